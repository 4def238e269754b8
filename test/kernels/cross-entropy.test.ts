import { describe, expect, it } from "vitest";
import { grad, noGrad, ops, type Tensor, tensor, zeros } from "../../src/compute/tensor/index.ts";
import { numbers, refusal } from "../tensor/numbers.ts";
import {
  exact,
  expectNear,
  type FloatType,
  floatTypes,
  gradientsOf,
  normal,
  productTypes,
  roundingError,
} from "./inputs.ts";

const ignored = -100;
const sizes = [
  [1, 2],
  [4, 7],
  [33, 65],
  [17, 1025],
  [3, 5003],
] as const;
const cases = sizes.flatMap(([rows, classes]) => floatTypes.map((dtype) => [rows, classes, dtype] as const));

/** A target per row, the second one ignored. */
function makeTargets(numRows: number, numClasses: number): Tensor {
  const ids = Array.from({ length: numRows }, (_, row) => (row === 1 ? ignored : (row * 7919) % numClasses));
  return tensor(BigInt64Array.from(ids, BigInt));
}

/** Mean of -log softmax at the targets, from libtorch's own operators. */
function reference(logits: Tensor, targets: Tensor): Tensor {
  const counted = targets.ne(ignored);
  const picked = logits.logSoftmax(1).gather(1, targets.clamp(0).unsqueeze(1)).squeeze(1);
  return picked.mul(counted).sum().neg().div(counted.sum());
}

const double = (value: Tensor) => value.mul(2.5);

describe("cross_entropy", () => {
  it.each(cases)(
    "agrees with float64 on %ix%i logits of %s, and so does the gradient",
    (rows, classes, dtype) => {
      const logits = normal([rows, classes], 1, { dtype, std: 3 }).requiresGrad_();
      const targets = makeTargets(rows, classes);
      const loss = ops.troupe.crossEntropy(logits, targets, ignored);
      const wide = exact(logits);
      const expected = reference(wide, targets);
      expect(loss.dtype).toBe("float32");
      expectNear(loss, expected, 2e-6);
      const [wanted] = grad(double(expected), wide);
      const [gradient] = grad(double(loss), logits);
      expect(gradient?.dtype).toBe(dtype);
      expectNear(gradient as Tensor, wanted as Tensor, roundingError[dtype]);
    },
  );

  it("gives NaN and gradients of 0 when every target is ignored, as libtorch does", () => {
    const logits = normal([3, 5], 1).requiresGrad_();
    const loss = ops.troupe.crossEntropy(
      logits,
      tensor([-100n, -100n, -100n].map(Number), { dtype: "int64" }),
      ignored,
    );
    expect(loss.item()).toBeNaN();
    expect(numbers(grad(loss, logits)[0] as Tensor)).toEqual(Array(15).fill(0));
  });

  it("takes masked classes of -infinity, and lets +infinity and NaN show in the loss", () => {
    const loss = (value: number) => {
      const logits = normal([2, 100], 1);
      logits.narrow(1, 3, 1).fill_(value);
      return ops.troupe.crossEntropy(logits, tensor([1, 2], { dtype: "int64" }), ignored).item();
    };
    const masked = normal([2, 100], 1).to("float64");
    masked.narrow(1, 3, 1).fill_(Number.NEGATIVE_INFINITY);
    expect(loss(Number.NEGATIVE_INFINITY)).toBeCloseTo(
      ops.crossEntropyLoss(masked, tensor([1, 2], { dtype: "int64" })).item(),
      5,
    );
    expect(loss(Number.POSITIVE_INFINITY)).toBeNaN();
    expect(loss(Number.NaN)).toBeNaN();
  });

  it("stays finite for logits that overflow exp", () => {
    const logits = tensor([[1e4, 0, -1e4]]).requiresGrad_();
    const loss = ops.troupe.crossEntropy(logits, tensor([1], { dtype: "int64" }), ignored);
    expect(loss.item()).toBe(1e4);
    expect(numbers(grad(loss, logits)[0] as Tensor)).toEqual([1, -1, 0]);
  });

  it.each([4, -1])("refuses target %i of 4 classes before any work, naming it and its row", (bad) => {
    const call = () =>
      ops.troupe.crossEntropy(zeros([3, 4]), tensor([0, 3, bad], { dtype: "int64" }), ignored);
    expect(refusal(call)?.message).toContain(`within 0 and 3, got ${bad} in row 2`);
  });

  it("refuses targets that do not fit the rows, and float64 logits", () => {
    const ids = zeros([3], { dtype: "int64" });
    expect(refusal(() => ops.troupe.crossEntropy(zeros([2, 4]), ids, ignored))?.message).toContain(
      "one for each of 2 rows",
    );
    const wide = () => ops.troupe.crossEntropy(zeros([3, 4], { dtype: "float64" }), ids, ignored);
    expect(refusal(wide)?.message).toContain("logits to be [rows, classes], float32");
  });
});

function projection(rows: number, classes: number, width: number, dtype: FloatType) {
  const hidden = normal([rows, width], 1, { dtype }).requiresGrad_();
  const weight = normal([classes, width], 2, { dtype, std: width ** -0.5 }).requiresGrad_();
  return { hidden, weight, targets: makeTargets(rows, classes) };
}

function expectLikeReference(rows: number, classes: number, width: number, dtype: FloatType): void {
  const { hidden, weight, targets } = projection(rows, classes, width, dtype);
  const loss = ops.troupe.linearCrossEntropy(hidden, weight, targets, ignored);
  const wide = [exact(hidden), exact(weight)] as const;
  const expected = reference(wide[0].matmul(wide[1].transpose(0, 1)), targets);
  // The logits are rounded to dtype, so the loss carries their rounding.
  expectNear(loss, expected, dtype === "float32" ? 2e-6 : 2e-3);
  const wanted = grad(double(expected), wide);
  grad(double(loss), [hidden, weight]).forEach((gradient, i) => {
    expect(gradient?.dtype).toBe(dtype);
    expectNear(gradient as Tensor, wanted[i] as Tensor, 4 * roundingError[dtype]);
  });
}

describe("linear_cross_entropy", () => {
  it.each(cases.filter(([, , dtype]) => productTypes.includes(dtype)))(
    "agrees with float64 on %i rows of %i classes in %s, and so do both gradients",
    (rows, classes, dtype) => {
      expectLikeReference(rows, classes, 24, dtype);
    },
  );

  it.each([
    ["float32", 500],
    ["bfloat16", 900],
  ] as const)("takes rows in several chunks when their logits pass 64 MiB (%s)", (dtype, rows) => {
    const { hidden, weight, targets } = projection(rows, 40_000, 8, dtype);
    const wide = [hidden, weight].map((t) => t.detach().to("float32").requiresGrad_()) as [Tensor, Tensor];
    const expected = ops.troupe.crossEntropy(wide[0].matmul(wide[1].transpose(0, 1)), targets, ignored);
    const loss = ops.troupe.linearCrossEntropy(hidden, weight, targets, ignored);
    expectNear(loss, expected, dtype === "float32" ? 2e-6 : 2e-3);
    const wanted = grad(expected, wide);
    grad(loss, [hidden, weight]).forEach((gradient, i) => {
      expectNear(gradient as Tensor, wanted[i] as Tensor, 4 * roundingError[dtype]);
    });
  });

  it("gives the same loss without gradients", () => {
    const { hidden, weight, targets } = projection(17, 65, 24, "float32");
    const recorded = ops.troupe.linearCrossEntropy(hidden, weight, targets, ignored);
    const plain = noGrad(() => ops.troupe.linearCrossEntropy(hidden, weight, targets, ignored));
    expect(plain.requiresGrad).toBe(false);
    expect(plain.item()).toBe(recorded.item());
  });

  it("makes the gradient of hidden alone when the weight is frozen", () => {
    const { hidden, weight, targets } = projection(17, 65, 24, "float32");
    const both = grad(ops.troupe.linearCrossEntropy(hidden, weight, targets, ignored), [hidden, weight]);
    const [alone] = grad(ops.troupe.linearCrossEntropy(hidden, weight.detach(), targets, ignored), [hidden]);
    expect(numbers(alone as Tensor)).toEqual(numbers(both[0] as Tensor));
  });

  it("walks the same graph twice when asked to keep it, and refuses to otherwise", () => {
    const { hidden, weight, targets } = projection(5, 7, 3, "float32");
    const loss = ops.troupe.linearCrossEntropy(hidden, weight, targets, ignored);
    const once = grad(loss, [hidden], undefined, { retainGraph: true });
    expect(numbers(grad(loss, [hidden])[0] as Tensor)).toEqual(numbers(once[0] as Tensor));
    expect(refusal(() => grad(loss, [hidden]))?.message).toMatch(/second time/);
  });

  it("refuses a target outside the vocabulary and widths that differ", () => {
    const ids = tensor([0, 50257], { dtype: "int64" });
    const outside = () => ops.troupe.linearCrossEntropy(zeros([2, 3]), zeros([50257, 3]), ids, ignored);
    expect(refusal(outside)?.message).toContain("within 0 and 50256, got 50257 in row 1");
    const uneven = () => ops.troupe.linearCrossEntropy(zeros([2, 3]), zeros([9, 4]), ids, ignored);
    expect(refusal(uneven)?.message).toContain("hidden to be [rows, width] and weight [classes, width]");
  });
});

describe("a kernel's backward", () => {
  it("refuses inputs that were changed in place since", () => {
    const logits = normal([3, 5], 1).requiresGrad_();
    const shifted = logits.add(0);
    const loss = ops.troupe.crossEntropy(shifted, zeros([3], { dtype: "int64" }), ignored);
    noGrad(() => shifted.zero_());
    expect(refusal(() => gradientsOf([loss], [logits], [tensor(1)]))?.message).toContain(
      "expected what backward needs to stay as it was, got a tensor of shape [3, 5]",
    );
  });
});
