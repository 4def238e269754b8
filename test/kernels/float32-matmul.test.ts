import { describe, expect, it } from "vitest";
import { ops, setNumThreads, type Tensor, zeros } from "../../src/compute/tensor/index.ts";
import { refusal } from "../tensor/numbers.ts";
import { exact, expectNear, expectSame, gradientsOf, normal } from "./inputs.ts";

// Large enough that oneDNN takes them where libtorch's own choice is slow.
const [rows, inner, columns] = [200, 130, 150] as const;
const a = () => normal([rows, inner], 1).requiresGrad_();
const b = () => normal([inner, columns], 2).requiresGrad_();
const tolerance = 2e-6;

describe("float32 products", () => {
  it("agree with float64 for every layout of the operands, and so do their gradients", () => {
    const layouts: readonly [Tensor, Tensor][] = [
      [a(), b()],
      [normal([inner, rows], 1).transpose(0, 1).requiresGrad_(), b()],
      [a(), normal([columns, inner], 2).transpose(0, 1).requiresGrad_()],
      [
        normal([rows, 2 * inner], 1)
          .narrow(1, 3, inner)
          .requiresGrad_(),
        b(),
      ],
      [normal([1, 1], 1).expand([rows, inner]).requiresGrad_(), b()],
    ];
    for (const operands of layouts) {
      const product = operands[0].mm(operands[1]);
      const wide = operands.map(exact) as [Tensor, Tensor];
      const expected = wide[0].mm(wide[1]);
      expectNear(product, expected, tolerance);
      const gradient = normal([rows, columns], 3);
      const wanted = gradientsOf([expected], wide, [gradient.to("float64")]);
      gradientsOf([product], operands, [gradient]).forEach((got, i) => {
        expectNear(got, wanted[i] as Tensor, tolerance);
      });
    }
  });

  it("add a bias that is broadcast, with and without factors", () => {
    const bias = normal([columns], 4);
    const expected = a().to("float64").mm(b().to("float64"));
    expectNear(ops.addmm(bias, a(), b()), expected.add(bias), tolerance);
    expectNear(ops.addmm(bias, a(), b(), 0.5, 2), expected.mul(2).add(bias.mul(0.5)), tolerance);
    expectNear(ops.linear(a(), b().t(), bias), expected.add(bias), tolerance);
  });

  it("multiply batches", () => {
    const left = normal([6, 64, 100], 1);
    const right = normal([6, 100, 64], 2);
    expectNear(left.bmm(right), left.to("float64").bmm(right.to("float64")), tolerance);
    expectNear(
      left.bmm(left.transpose(1, 2)),
      left.to("float64").bmm(left.to("float64").transpose(1, 2)),
      tolerance,
    );
  });

  it("give the same bits with one thread and with two", () => {
    setNumThreads(2);
    const two = a().mm(b());
    setNumThreads(1);
    expectSame(two, a().mm(b()));
  });

  it("take empty operands and refuse those that do not fit", () => {
    expect(zeros([0, 5]).mm(zeros([5, 3])).shape).toEqual([0, 3]);
    expect(refusal(() => a().mm(a()))?.message).toMatch(/cannot be multiplied/);
    expect(refusal(() => a().mm(b().to("float64")))).toBeDefined();
  });
});
