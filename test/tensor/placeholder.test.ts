import { describe, expect, it } from "vitest";
import { ones, ops, scope, type Tensor, tensor } from "../../src/compute/tensor/index.ts";

const placeholder = (shape: readonly number[]) => ops.troupe.placeholder(shape, "float32");
const isPlaceholder = ({ device }: Tensor) => device === "meta";

describe("a placeholder", () => {
  it("has a shape and a dtype, and no values", () => {
    scope(() => {
      const x = placeholder([2, 3]);
      expect([x.shape, x.dtype, x.device]).toEqual([[2, 3], "float32", "meta"]);
      expect(() => x.sum().item()).toThrow(/meta/i);
    });
  });

  it("makes a placeholder of whatever is computed from it, also beside tensors with memory", () => {
    scope(() => {
      const x = placeholder([2, 3]);
      for (const y of [
        x.matmul(ones([3, 4])),
        ones([2, 4]).add(x.matmul(placeholder([3, 1]))),
        ops.cat([x, ones([2, 3])], 1),
      ]) {
        expect(isPlaceholder(y)).toBe(true);
        expect(y.shape[0]).toBe(2);
      }
    });
  });

  it("is seen among indices, which may have gaps", () => {
    scope(() => {
      const picked = ones([4, 3]).index([undefined, ops.troupe.placeholder([2], "int64")]);
      expect(isPlaceholder(picked)).toBe(true);
      expect(picked.shape).toEqual([4, 2]);
    });
  });

  it("flows through Troupe's own kernels", () => {
    scope(() => {
      const heads = placeholder([1, 2, 4, 8]);
      expect(ops.troupe.attention(heads, heads, heads, true, 1).shape).toEqual([1, 2, 4, 8]);
      expect(ops.troupe.layerNorm(placeholder([2, 8]), ones([8]), undefined, 1e-5).shape).toEqual([2, 8]);
      const targets = tensor([0, 1], { dtype: "int64" });
      expect(ops.troupe.linearCrossEntropy(placeholder([2, 8]), ones([5, 8]), targets, -100).shape).toEqual(
        [],
      );
    });
  });

  it("has its shape computed where libtorch has no rule for it", () => {
    scope(() => {
      const y = placeholder([2, 3]).gt(0).logicalNot();
      expect([y.shape, y.dtype, isPlaceholder(y)]).toEqual([[2, 3], "bool", true]);
    });
  });

  it("cannot be written into a tensor that has memory", () => {
    scope(() => expect(() => ones([2]).add_(placeholder([2]))).toThrow("add_"));
  });
});
