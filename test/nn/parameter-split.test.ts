import { describe, expect, test } from "vitest";
import { logicalRuns, Module, materialize, normal, Parameter } from "../../src/compute/nn/index.ts";
import { scope } from "../../src/compute/tensor/index.ts";

class Holder extends Module {
  readonly weight: Parameter;
  constructor(shape: readonly number[]) {
    super();
    this.weight = new Parameter(shape, normal(0, 1));
  }
  override forward(): void {}
}

/** The initial values of a 2-D parameter, complete or of one rank. */
function valuesOf(shape: readonly number[], cut?: Parameters<Parameter["cut"]>[0]): number[][] {
  return scope(() => {
    const holder = new Holder(shape);
    if (cut !== undefined) holder.weight.cut(cut);
    materialize(holder, { seed: 7 });
    const { tensor } = holder.weight;
    const rows = tensor.detach().toTypedArray() as Float32Array;
    const width = tensor.shape[1] ?? 0;
    tensor.dispose();
    return Array.from({ length: rows.length / width }, (_, row) => [
      ...rows.subarray(row * width, (row + 1) * width),
    ]);
  });
}

describe("a split parameter", () => {
  const whole = valuesOf([6, 12]);

  test("begins with its own rows of the parameter", () => {
    expect(valuesOf([6, 12], { dim: 0, index: 1, count: 2 })).toEqual(whole.slice(3));
  });

  test("begins with its own columns of the parameter", () => {
    expect(valuesOf([6, 12], { dim: 1, index: 2, count: 3 })).toEqual(whole.map((row) => row.slice(8)));
  });

  test("takes its piece of each fused part", () => {
    const piece = valuesOf([6, 12], { dim: 1, index: 1, count: 2, parts: 3 });
    expect(piece).toEqual(whole.map((row) => [2, 3, 6, 7, 10, 11].map((column) => row[column])));
  });

  test("is padded with zeros where the pieces are rounded up", () => {
    const padded = valuesOf([5, 4], { dim: 0, index: 1, count: 2, pad: true });
    expect(padded).toEqual([...valuesOf([5, 4]).slice(3), [0, 0, 0, 0]]);
  });

  test("knows the place of any range in the complete parameter", () => {
    const parameter = new Parameter([6, 12], normal(0, 1));
    parameter.cut({ dim: 1, index: 1, count: 2, parts: 3 });
    const runs = [...logicalRuns(parameter.shape, parameter.split, 3, 5)];
    expect(runs).toEqual([
      { begin: 3, logicalBegin: 7, numel: 1 },
      { begin: 4, logicalBegin: 10, numel: 2 },
      { begin: 6, logicalBegin: 14, numel: 2 },
    ]);
  });

  test("refuses what does not divide", () => {
    const parameter = new Parameter([6, 10], normal(0, 1));
    expect(() => parameter.cut({ dim: 1, index: 0, count: 4 })).toThrow(
      "[Parameter] expected dim 1 of shape [6,10] to divide by 1 × 4, got 10",
    );
  });
});
