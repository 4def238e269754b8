import { describe, expect, test } from "vitest";
import { explicitAttention } from "../../src/compute/nn/attention/attention.ts";
import {
  activations,
  BareLayerNorm,
  Conv1D,
  Conv1d,
  Conv2d,
  crossEntropy,
  ctcLoss,
  dematerialize,
  Embedding,
  GroupNorm,
  gated,
  LayerNorm,
  Linear,
  linearCrossEntropy,
  type Module,
  materialize,
  RelativePositionBias,
  RMSNorm,
  rotaryAngles,
  rotaryFrequencies,
  rotate,
  WeightNormConv1d,
} from "../../src/compute/nn/index.ts";
import { type DType, empty, ops, scope, type Tensor, tensor } from "../../src/compute/tensor/index.ts";
import { expectGradients } from "./finite-differences.ts";

const float64 = { dtype: "float64", step: 1e-5, tolerance: 1e-7 } as const;
// Kernels that compute in float32 whatever they are given leave their rounding in the difference.
const float32 = { dtype: "float32", step: 1e-2, tolerance: 5e-3 } as const;

let stream = 0;
function random(shape: number[], dtype: DType): Tensor {
  return ops.troupe.philoxNormal_(empty(shape), 0, 1, 11, stream++, 0).to(dtype).requiresGrad_();
}

/** A scalar that weighs every element of `out` differently. */
function weighted(out: Tensor): Tensor {
  const weights = Array.from({ length: out.numel }, (_, index) => Math.sin(1 + index));
  return out
    .to("float64")
    .mul(tensor(weights, { dtype: "float64" }).view(out.shape))
    .sum();
}

/** Checks a module with parameters in the case's dtype and inputs given beside it. */
function expectModuleGradients(
  module: Module,
  forward: () => Tensor,
  inputs: Record<string, Tensor>,
  kind: typeof float64 | typeof float32,
) {
  const parameters = [...module.namedParameters()].map(([name, parameter]) => [name, parameter.tensor]);
  expectGradients(() => weighted(forward()), { ...Object.fromEntries(parameters), ...inputs }, kind);
  dematerialize(module);
}

describe("gradients equal central differences", () => {
  test("of the affine maps and the embedding", () => {
    scope(() => {
      const [linear, conv, table] = [new Linear(4, 3), new Conv1D(4, 3), new Embedding(6, 3)];
      for (const module of [linear, conv, table]) materialize(module, { seed: 5, dtype: "float64" });
      const x = random([2, 2, 4], "float64");
      expectModuleGradients(linear, () => linear.forward(x), { x }, float64);
      x.grad?.zero_();
      expectModuleGradients(conv, () => conv.forward(x), { x }, float64);
      const ids = tensor([[1, 5, 1]], { dtype: "int64" });
      expectModuleGradients(table, () => table.forward(ids), {}, float64);
    });
  });

  test.each(Object.keys(activations) as (keyof typeof activations)[])("of %s", (name) => {
    scope(() => {
      const x = random([7], "float64");
      expectGradients(() => weighted(activations[name](x)), { x }, float64);
    });
  });

  test("of attention by its definition, with grouped heads, mask, window and a bias of every score", () => {
    scope(() => {
      const q = random([2, 4, 3, 3], "float64");
      const [k, v] = [random([2, 2, 5, 3], "float64"), random([2, 2, 5, 3], "float64")];
      const bias = random([1, 4, 3, 5], "float64");
      // Each query sees something: of one that sees nothing the scores are lost in rounding, and differences with them.
      const mask = tensor([1, 1, 0, 1, 1, 0, 1, 1, 0, 1], { dtype: "bool" }).view([2, 1, 1, 5]);
      const options = { causal: true, window: 4, scale: 0.6, mask, bias };
      expectGradients(() => weighted(explicitAttention(q, k, v, options)), { q, k, v, bias }, float64);
    });
  });

  test("of layer norm without parameters, which is one that scales by 1 and shifts by 0", () => {
    scope(() => {
      const [bare, whole] = [new BareLayerNorm(1e-3), new LayerNorm(6, 1e-3)];
      materialize(whole, { seed: 5 });
      const [x, residual] = [random([3, 6], "float32"), random([3, 6], "float32")];
      const [sum, normed] = bare.addThenNorm(x, residual);
      const [, expected] = whole.addThenNorm(x, residual);
      expect(normed.sub(expected).abs().max().item()).toBeLessThan(1e-6);
      expect(bare.forward(sum).eq(normed).all().item()).toBeTruthy();
      expect(bare.numParameters).toBe(0);
      expectModuleGradients(bare, () => bare.addThenNorm(x, residual)[1], { x, residual }, float32);
      dematerialize(whole);
    });
  });

  test("of layer norm, alone and fused with the residual sum", () => {
    scope(() => {
      const norm = new LayerNorm(6);
      const [x, residual] = [random([3, 6], "float32"), random([3, 6], "float32")];
      materialize(norm, { seed: 5 });
      expectModuleGradients(norm, () => norm.forward(x), { x }, float32);
      x.grad?.zero_();
      materialize(norm, { seed: 5 });
      const both = () => {
        const [sum, normed] = norm.addThenNorm(x, residual);
        return sum.add(normed.mul(2));
      };
      expectModuleGradients(norm, both, { x, residual }, float32);
    });
  });

  test("of root-mean-square norm, alone and fused with the residual sum", () => {
    scope(() => {
      const norm = new RMSNorm(6);
      const [x, residual] = [random([3, 6], "float32"), random([3, 6], "float32")];
      materialize(norm, { seed: 5 });
      expectModuleGradients(norm, () => norm.forward(x), { x }, float32);
      x.grad?.zero_();
      materialize(norm, { seed: 5 });
      const both = () => {
        const [sum, normed] = norm.addThenNorm(x, residual);
        return sum.add(normed.mul(2));
      };
      expectModuleGradients(norm, both, { x, residual }, float32);
    });
  });

  test("of rotary positions, in float64 and by the kernel", () => {
    scope(() => {
      const angles = rotaryAngles(rotaryFrequencies(4, 100), 3);
      for (const kind of [float64, float32]) {
        const x = random([1, 2, 3, 5], kind.dtype);
        expectGradients(() => weighted(rotate(x, angles)), { x }, kind);
      }
    });
  });

  test("of gated activations, in float64 and by the kernel", () => {
    scope(() => {
      for (const kind of [float64, float32]) {
        for (const name of ["silu", "gelu_new", "relu"] as const) {
          const [gate, up] = [random([7], kind.dtype), random([7], kind.dtype)];
          expectGradients(() => weighted(gated(name, gate, up)), { gate, up }, kind);
        }
      }
    });
  });

  test("of T5's relative position bias", () => {
    scope(() => {
      const bias = new RelativePositionBias(2, { numBuckets: 8, maxDistance: 12, bothWays: true });
      materialize(bias, { seed: 5, dtype: "float64" });
      expectModuleGradients(bias, () => bias.between(5, 9), {}, float64);
    });
  });

  test("of convolutions, strided, padded, dilated and in groups, and of a weight by magnitude and direction", () => {
    scope(() => {
      const along = new Conv1d(4, 6, 3, { stride: 2, padding: 1, dilation: 2, groups: 2 });
      const over = new Conv2d(2, 3, [2, 3], { stride: [1, 2], padding: 1 });
      const normed = [0, 1, 2].map(
        (dim) => new WeightNormConv1d(4, 6, 3, dim as 0 | 1 | 2, { padding: 1, groups: 2 }),
      );
      const line = random([2, 4, 7], "float64");
      for (const module of [along, ...normed]) {
        materialize(module, { seed: 5, dtype: "float64" });
        expectModuleGradients(module, () => module.forward(line), { line }, float64);
        line.grad?.zero_();
      }
      const picture = random([1, 2, 3, 5], "float64");
      materialize(over, { seed: 5, dtype: "float64" });
      expectModuleGradients(over, () => over.forward(picture), { picture }, float64);
    });
  });

  test("of group norm", () => {
    scope(() => {
      const norm = new GroupNorm(2, 4);
      const x = random([2, 4, 3], "float64");
      materialize(norm, { seed: 5, dtype: "float64" });
      expectModuleGradients(norm, () => norm.forward(x), { x }, float64);
    });
  });

  test("of connectionist temporal classification, with rows of unequal length", () => {
    scope(() => {
      const logits = random([3, 6, 4], "float64");
      const labels = tensor([1, 2, 2, 3, -100, -100, 1, 1, -1], { dtype: "int64", shape: [3, 3] });
      const inputLengths = tensor([6, 4, 5], { dtype: "int64" });
      expectGradients(() => ctcLoss(logits, labels, { inputLengths }), { logits }, float64);
      logits.grad?.zero_();
      expectGradients(() => ctcLoss(logits, labels, { blank: 0, reduction: "sum" }), { logits }, float64);
    });
  });

  test("of both cross entropies, with ignored targets", () => {
    scope(() => {
      const targets = tensor([1, -100, 4, 0], { dtype: "int64" });
      const logits = random([4, 5], "float32");
      expectGradients(() => crossEntropy(logits, targets), { logits }, float32);
      const [hidden, weight] = [random([4, 3], "float32"), random([5, 3], "float32")];
      expectGradients(() => linearCrossEntropy(hidden, weight, targets), { hidden, weight }, float32);
    });
  });
});

describe("cross entropy", () => {
  test("equals values computed by hand", () => {
    scope(() => {
      const logits = tensor(
        [
          [1, 2, 3, 4],
          [0, 0, 0, 0],
          [5, -5, 1, 2],
        ],
        { dtype: "float32" },
      );
      const targets = tensor([3, -100, 1], { dtype: "int64" });
      expect(crossEntropy(logits, targets).item()).toBeCloseTo(5.253058, 5);
    });
  });

  test("is the same through the output layer, whose logits never exist", () => {
    scope(() => {
      const [hidden, weight] = [random([2, 3, 8], "float32"), random([11, 8], "float32")];
      const targets = tensor(
        [
          [1, 2, -100],
          [10, 0, 5],
        ],
        { dtype: "int64" },
      );
      const whole = crossEntropy(hidden.matmul(weight.transpose(0, 1)), targets).item();
      expect(linearCrossEntropy(hidden, weight, targets).item()).toBeCloseTo(whole, 5);
    });
  });
});
