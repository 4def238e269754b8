import { describe, expect, it } from "vitest";
import {
  backward,
  enableGrad,
  grad,
  gradEnabled,
  nativeInfo,
  noGrad,
  ones,
  ops,
  scope,
  type Tensor,
  tensor,
  zeros,
} from "../../src/compute/tensor/index.ts";
import { expectClose, numbers, refusal } from "./numbers.ts";

/** Distinct values in (−1, 1) without symmetry. */
function sample(...shape: number[]): Tensor {
  const numel = shape.reduce((product, size) => product * size, 1);
  const values = Float64Array.from({ length: numel }, (_, i) => Math.sin(1 + 1.7 * i));
  return tensor(values, { shape });
}

/** Makes every output element count with its own weight. */
function weighted(t: Tensor): Tensor {
  return t.mul(sample(...t.shape).add(1.5)).sum();
}

/** The derivative of a scalar function by each element of `x`, by central differences. */
function differences(f: (x: Tensor) => Tensor, x: Tensor): number[] {
  const h = 1e-6;
  const base = numbers(x.detach());
  const at = (values: number[]) =>
    scope(() => f(tensor(Float64Array.from(values), { shape: x.shape })).item());
  return base.map((value, i) => (at(base.with(i, value + h)) - at(base.with(i, value - h))) / (2 * h));
}

const ids = (...values: number[]) => tensor(values, { dtype: "int64" });

describe("gradients equal central differences", () => {
  const cases: Record<string, { shape: number[]; f: (x: Tensor) => Tensor }> = {
    "add, mul, div": { shape: [2, 3], f: (x) => x.mul(x).add(1).div(sample(3).add(2)) },
    "pow and sqrt": { shape: [3], f: (x) => x.pow(2).add(0.5).sqrt() },
    "exp, log, tanh, sigmoid": { shape: [4], f: (x) => x.exp().add(1).log().add(x.tanh()).mul(x.sigmoid()) },
    "gelu in both forms": { shape: [5], f: (x) => x.gelu().add(x.gelu("tanh")) },
    silu: { shape: [4], f: (x) => x.silu() },
    matmul: { shape: [2, 3], f: (x) => x.matmul(sample(3, 2)).matmul(x) },
    "batched matmul": { shape: [2, 2, 3], f: (x) => x.matmul(x.transpose(1, 2)) },
    linear: { shape: [2, 3], f: (x) => ops.linear(sample(4, 3), x, sample(2)) },
    einsum: { shape: [2, 3], f: (x) => ops.einsum("ij,kj->ik", [x, x]) },
    "softmax and logSoftmax": { shape: [2, 3], f: (x) => x.softmax(-1).add(x.logSoftmax(0)) },
    logsumexp: { shape: [2, 3], f: (x) => x.logsumexp(1) },
    "layerNorm, input": { shape: [2, 4], f: (x) => ops.layerNorm(x, [4], sample(4), sample(4)) },
    "layerNorm, weight": { shape: [4], f: (x) => ops.layerNorm(sample(3, 4), [4], x) },
    "embedding, weight": { shape: [3, 2], f: (x) => ops.embedding(x, ids(2, 0, 2)) },
    crossEntropyLoss: { shape: [2, 3], f: (x) => ops.crossEntropyLoss(x, ids(2, 0)) },
    conv1d: { shape: [1, 2, 5], f: (x) => ops.conv1d(x, sample(3, 2, 2), sample(3), 2, 1) },
    "conv2d, weight": { shape: [2, 1, 2, 2], f: (x) => ops.conv2d(sample(1, 1, 3, 3), x) },
    "views and joins": {
      shape: [4, 2],
      f: (x) =>
        ops.cat(
          [x.view([2, 4]).t(), ...x.split(2), x.narrow(0, 1, 2)].map((t) => t.reshape([-1])),
          0,
        ),
    },
    "expand and broadcast": { shape: [1, 3], f: (x) => x.expand([4, 3]).mul(sample(4, 1)) },
    "index, gather, scatter": {
      shape: [3, 2],
      f: (x) =>
        x
          .indexSelect(0, ids(2, 2))
          .add(x.gather(0, ids(0, 1, 2, 0).view([2, 2])))
          .scatterAdd(1, ids(0, 0, 1, 1).view([2, 2]), x.narrow(0, 0, 2)),
    },
    "where and maskedFill": {
      shape: [4],
      f: (x) =>
        ops.where(x.gt(0), x.mul(2), x.square()).maskedFill(tensor([0, 1, 0, 0], { dtype: "bool" }), 3),
    },
    "cumsum and mean": { shape: [2, 3], f: (x) => x.cumsum(1).mean(0) },
    "amax and topk": { shape: [2, 4], f: (x) => x.amax(1).add(x.topk(2, 1)[0].sum(1)) },
    std: { shape: [2, 4], f: (x) => x.std(1) },
    "to and back": { shape: [3], f: (x) => x.to("float64").clone().contiguous() },
  };

  it.each(Object.entries(cases))("%s", (_, { shape, f }) => {
    scope(() => {
      const x = sample(...shape).requiresGrad_();
      const loss = (input: Tensor) => weighted(f(input));
      const [gradient] = grad(loss(x), x);
      expectClose(numbers(gradient as Tensor), differences(loss, x), 1e-7);
    });
  });

  it("attention, by query, key and value", (context) => {
    if (nativeInfo().torch.startsWith("1.")) context.skip("libtorch 1 has no scaled_dot_product_attention");
    scope(() => {
      const x = sample(3, 1, 2, 3, 4).requiresGrad_();
      const attention = (input: Tensor) => {
        const [query, key, value] = input.unbind() as [Tensor, Tensor, Tensor];
        return weighted(ops.scaledDotProductAttention(query, key, value, undefined, 0, true));
      };
      const [gradient] = grad(attention(x), x);
      expectClose(numbers(gradient as Tensor), differences(attention, x), 1e-7);
    });
  });
});

describe("backward", () => {
  const leaf = (...values: number[]) => tensor(values).requiresGrad_();

  it("adds to .grad of the leaves", () => {
    const x = leaf(1, 2);
    expect(x.grad).toBeNull();
    x.square().sum().backward();
    x.square().sum().backward();
    expect(numbers(x.grad as Tensor)).toEqual([4, 8]);
  });

  it("takes a gradient for an output of many elements", () => {
    const x = leaf(1, 2);
    x.square().backward(tensor([1, 10]));
    expect(numbers(x.grad as Tensor)).toEqual([2, 40]);
    expect(refusal(() => x.square().backward())?.message).toContain(
      "grad can be implicitly created only for scalar outputs",
    );
  });

  it("refuses a gradient of another shape", () => {
    const x = leaf(1, 2, 3);
    const sentence = "expected a gradient of its tensor's shape, [3], got [2, 3]";
    expect(refusal(() => x.mul(1).backward(ones([2, 3])))?.message).toBe(`[backward] ${sentence}`);
    expect(refusal(() => grad(x.mul(1), x, ones([2, 3])))?.message).toBe(`[grad] ${sentence}`);
    expect(refusal(() => x.sum().backward(tensor([1, 10])))?.message).toContain(
      "[backward] expected a gradient",
    );
    expect(refusal(() => (x.grad = ones([2, 3])))?.message).toBe(`[grad] ${sentence}`);
    expect(x.grad).toBeNull();
  });

  it("takes several outputs, with gradients for some", () => {
    const x = leaf(3);
    backward([x.square(), x.mul(2)], [tensor([1]), undefined]);
    expect(numbers(x.grad as Tensor)).toEqual([8]);
  });

  it("fills only the inputs named", () => {
    const [x, y] = [leaf(1), leaf(2)];
    backward(x.mul(y), undefined, { inputs: [y] });
    expect(x.grad).toBeNull();
    expect(numbers(y.grad as Tensor)).toEqual([1]);
  });

  it("frees the graph unless it is retained", () => {
    const x = leaf(3);
    const y = x.square();
    y.backward(undefined, { retainGraph: true });
    y.backward();
    expect(numbers(x.grad as Tensor)).toEqual([12]);
    expect(refusal(() => y.backward())?.code).toBe("TENSOR_OP_FAILED");
  });

  it("writes into a gradient that is a view of a flat buffer", () => {
    const flat = zeros([4]);
    const x = leaf(1, 2);
    x.grad = flat.narrow(0, 2, 2);
    x.square().sum().backward();
    expect(numbers(flat)).toEqual([0, 0, 2, 4]);
    x.grad = null;
    expect(x.grad).toBeNull();
  });

  it("tells when a saved value was overwritten", () => {
    const x = leaf(1, 2);
    const y = x.exp();
    const loss = y.sum();
    noGrad(() => y.detach().mul_(2));
    expect(refusal(() => loss.backward())?.message).toMatch(
      /^\[backward\] expected what backward needs to stay as it was, got a tensor of shape \[2\], the output of Exp, changed in place \(write mul\(x\) for mul_\(x\)/,
    );
  });
});

describe("grad", () => {
  it("returns one gradient per input and leaves .grad alone", () => {
    const x = tensor([2]).requiresGrad_();
    const y = tensor([5]).requiresGrad_();
    const [dx, dy] = grad(x.mul(y), [x, y]);
    expect([numbers(dx as Tensor), numbers(dy as Tensor)]).toEqual([[5], [2]]);
    expect(x.grad).toBeNull();
  });

  it("refuses an unused input, or returns null where that is allowed", () => {
    const x = tensor([2]).requiresGrad_();
    const unused = tensor([1]).requiresGrad_();
    expect(refusal(() => grad(x.square(), [unused]))?.message).toContain("not have been used");
    expect(grad(x.square(), [unused], undefined, { allowUnused: true })).toEqual([null]);
  });
});

describe("recording", () => {
  it("stops inside noGrad and is back after it, also when the body throws", () => {
    const x = tensor([2]).requiresGrad_();
    expect(noGrad(() => [gradEnabled(), x.square().requiresGrad])).toEqual([false, false]);
    expect(() =>
      noGrad(() => {
        throw new Error("body");
      }),
    ).toThrow("body");
    expect(gradEnabled()).toBe(true);
    expect(x.square().requiresGrad).toBe(true);
  });

  it("can be turned on again inside noGrad", () => {
    const x = tensor([2]).requiresGrad_();
    expect(noGrad(() => enableGrad(() => x.square().requiresGrad))).toBe(true);
  });

  it("ends at detach", () => {
    expect(tensor([2]).requiresGrad_().square().detach().requiresGrad).toBe(false);
  });

  it("is refused for integers", () => {
    expect(refusal(() => ids(1).requiresGrad_())?.message).toContain("floating point");
  });
});
