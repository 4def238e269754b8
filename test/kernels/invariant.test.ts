import { afterEach, beforeEach, describe, expect, it } from "vitest";
import {
  noGrad,
  ops,
  setInvariant,
  setNumThreads,
  type Tensor,
  zeros,
} from "../../src/compute/tensor/index.ts";
import { exact, expectNear, expectSame, floatTypes, gradientsOf, normal, roundingError } from "./inputs.ts";

beforeEach(() => {
  setInvariant(true);
});
afterEach(() => {
  setInvariant(false);
});

describe.each(floatTypes)("invariant products in %s", (dtype) => {
  const [rows, inner, columns] = [103, 401, 77] as const;
  const a = () => normal([rows, inner], 1, { dtype });
  const b = () => normal([inner, columns], 2, { dtype });

  it("agree with float64 for every layout of the operands, with a bias and in batches", () => {
    const layouts: readonly (readonly [Tensor, Tensor])[] = [
      [a(), b()],
      [normal([inner, rows], 1, { dtype }).t(), normal([columns, inner], 2, { dtype }).t()],
      [normal([rows, 2 * inner], 1, { dtype }).narrow(1, 3, inner), b()],
      [normal([1, 1], 1, { dtype }).expand([rows, inner]), b()],
    ];
    const bias = normal([columns], 3, { dtype });
    const tolerance = Math.max(roundingError[dtype], 4e-6);
    for (const [left, right] of layouts) {
      const expected = exact(left).mm(exact(right));
      expectNear(left.mm(right), expected, tolerance);
      expectNear(ops.addmm(bias, left, right), expected.add(exact(bias)), tolerance);
      const scaled = ops.addmm(bias, left, right, 0.5, 2);
      expectNear(scaled, expected.mul(2).add(exact(bias).mul(0.5)), 4 * tolerance);
    }
    const [lefts, rights] = [normal([3, 20, 30], 4, { dtype }), normal([3, 30, 10], 5, { dtype })];
    expectNear(lefts.bmm(rights), exact(lefts).bmm(exact(rights)), tolerance);
    expect(zeros([0, 5]).mm(zeros([5, 3])).shape).toEqual([0, 3]);
    expectSame(zeros([2, 0], { dtype }).mm(zeros([0, 3], { dtype })), zeros([2, 3], { dtype }));
  });

  it("have rows that do not depend on their number, their place or the threads", () => {
    const all = ops.linear(a(), b().t().contiguous());
    for (const [first, count] of [
      [0, 1],
      [5, 1],
      [7, 13],
      [90, 13],
    ] as const)
      expectSame(ops.linear(a().narrow(0, first, count), b().t().contiguous()), all.narrow(0, first, count));
    expectSame(ops.linear(a().view([rows, 1, inner]), b().t().contiguous()).view([rows, columns]), all);
    setNumThreads(2);
    expectSame(a().mm(b()), all);
    setNumThreads(1);
  });

  it("leave gradients to the library", () => {
    const gradients = [true, false].map((invariant) => {
      setInvariant(invariant);
      const operands = [a().requiresGrad_(), b().requiresGrad_()] as const;
      return gradientsOf([operands[0].mm(operands[1])], operands, [normal([rows, columns], 3, { dtype })]);
    });
    gradients[0]?.forEach((gradient, index) => {
      expectSame(gradient, gradients[1]?.[index] as Tensor);
    });
  });
});

describe.each(floatTypes)("invariant attention in %s", (dtype) => {
  const [length, width] = [37, 20] as const;
  const heads = (count: number, stream: number) => normal([3, count, length, width], stream, { dtype });
  const [q, k, v] = [heads(4, 1), heads(2, 2), heads(2, 3)] as const;
  const attend = (of: readonly Tensor[], mask?: Tensor, window = 0, bias?: Tensor) =>
    ops.troupe.maskedAttention(
      of[0] as Tensor,
      of[1] as Tensor,
      of[2] as Tensor,
      mask,
      bias,
      true,
      window,
      0.2,
    );

  it.each([
    [0, undefined],
    [9, undefined],
    [0, [1, 4, length, length]],
    [9, [3, 1, 1, length]],
  ])("is the other's up to rounding, and so are its gradients: window %s, bias %s", (window, biased) => {
    const mask = normal([3, 1, 1, length], 4).gt(-1);
    const bias = biased && normal(biased, 6);
    const results = [true, false].map((invariant) => {
      setInvariant(invariant);
      const leaves = [q, k, v].map((each) => each.clone().requiresGrad_());
      const out = attend(leaves, mask, window, bias);
      return [out, ...gradientsOf([out], leaves, [normal(out.shape, 5, { dtype })])];
    });
    results[0]?.forEach((result, index) => {
      expectNear(result, results[1]?.[index] as Tensor, 4 * Math.max(roundingError[dtype], 2e-6));
    });
  });

  it("gives a query the bits that it has alone, in a shorter text, and between hidden keys", () =>
    noGrad(() => {
      const all = attend([q, k, v]);
      const cut = (x: Tensor, row: number, count: number) => x.narrow(0, row, 1).narrow(2, 0, count);
      for (const [row, count] of [
        [0, 37],
        [1, 12],
        [2, 1],
      ] as const)
        expectSame(attend([q, k, v].map((x) => cut(x, row, count))), cut(all, row, count));
      // The last query of a text, as a step of decoding has it.
      const last = ops.troupe.maskedAttention(
        q.narrow(2, 20, 1),
        k.narrow(2, 0, 21),
        v.narrow(2, 0, 21),
        undefined,
        undefined,
        true,
        0,
        0.2,
      );
      expectSame(last, all.narrow(2, 20, 1));
      // Every key twice, the second hidden: what is seen is the same.
      const [twice, seen] = [k, v].map((x) =>
        ops.stack([x, x.mul(3)], 3).view([3, 2, 2 * length, width]),
      ) as [Tensor, Tensor];
      const mask = ops.stack([ops.ones([1, 1, 1, length], "bool"), ops.zeros([1, 1, 1, length], "bool")], 4);
      const rows = ops.stack([q, q], 3).view([3, 4, 2 * length, width]);
      const hidden = attend([rows, twice, seen], mask.view([1, 1, 1, 2 * length]));
      expectSame(hidden.view([3, 4, length, 2, width]).select(3, 0), all);
    }));

  it("gives a query that sees nothing the mean of all values", () => {
    const mask = zeros([1, 1, 1, length], { dtype: "bool" });
    const out = attend([q, k, v], mask);
    const mean = exact(v).mean(2, true).repeatInterleave(2, 1).expand(out.shape);
    expectNear(out, mean, 2 * Math.max(roundingError[dtype], 2e-6));
  });
});
