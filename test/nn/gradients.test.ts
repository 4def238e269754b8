import { describe, expect, test } from "vitest";
import { explicitAttention } from "../../src/nn/attention.ts";
import {
  activations,
  Conv1D,
  crossEntropy,
  dematerialize,
  Embedding,
  LayerNorm,
  Linear,
  linearCrossEntropy,
  type Module,
  materialize,
} from "../../src/nn/index.ts";
import { type DType, empty, ops, scope, type Tensor, tensor } from "../../src/tensor/index.ts";
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
      const mask = tensor([1, 1, 0, 1, 1, 0, 0, 0, 0, 0], { dtype: "bool" }).view([2, 1, 1, 5]);
      const options = { causal: true, window: 4, scale: 0.6, mask, bias };
      expectGradients(() => weighted(explicitAttention(q, k, v, options)), { q, k, v, bias }, float64);
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
