import { describe, expect, it } from "vitest";
import { ops, scope, type Tensor, type TypedArray } from "../../src/compute/tensor/index.ts";
import { gradientCases } from "../fixtures/collectives/gradients.ts";
import { splitLayerInputs } from "../fixtures/collectives/split-layers.ts";
import { valuesOfRank } from "../fixtures/collectives/values.ts";
import { allBrought, reduced } from "./expected.ts";
import { type Members, valuesOf } from "./members.ts";

/** Outputs and gradients of the split layers as one device computes them. */
function wholeLayers(): { y: Tensor; x: Tensor; first: Tensor; second: Tensor } {
  const { x, first, second } = splitLayerInputs();
  const y = x.matmul(first.requiresGrad_()).gelu().matmul(second.requiresGrad_());
  y.square().sum().backward();
  return { y, x: x.grad as Tensor, first: first.grad as Tensor, second: second.grad as Tensor };
}

/** That backward is the adjoint of forward. */
export function describeGradients(members: Members, waitsTell: boolean): void {
  describe("gradients", () => {
    // Central differences of float64 with steps of 1e-6 are good to about 1e-9.
    it.each(Object.keys(gradientCases))("of %s equal finite differences", async (name) => {
      for (const size of [2, 3])
        for (const difference of valuesOf<number>(
          await members.run("gradients", size, { argument: { name } }),
        ))
          expect(difference).toBeLessThan(1e-7);
    });

    it("of split layers equal those of unsplit layers", async () => {
      const { y, x, first, second } = scope(() => wholeLayers());
      const widths = [0, 1].map((rank) => [first.narrow(1, 6 * rank, 6), second.narrow(0, 6 * rank, 6)]);
      const outcomes = await members.run("splitLayers", 2);
      valuesOf<Float64Array[]>(outcomes).forEach((values, rank) => {
        const expected = [y, x, ...(widths[rank] as Tensor[])].map((result) => result.toTypedArray());
        // The sums of float64 run in another order.
        for (const [index, value] of values.entries())
          for (const [i, element] of value.entries())
            expect(element).toBeCloseTo(Number(expected[index]?.[i]), 10);
      });
    });

    it.each(["float16", "bfloat16"] as const)(
      "of a product need no division (BMTrain's nccl_backward, %s)",
      async (dtype) => {
        const outcomes = await members.run("productBackward", 3, { argument: { dtype } });
        // BMTrain takes one loss for all ranks; here each rank has its own, so that the gradient is 3 times as large.
        const expected = [1, 2, 3].map((own) => [6, 3 * 6 * (6 / own)]);
        expect(valuesOf(outcomes)).toEqual(expected);
      },
    );

    it.each([[[128]], [[128, 128]]])(
      "of a reduce-scatter are gathered (BMTrain's nccl_backward, %j)",
      async (shape) => {
        const outcomes = await members.run("scatterBackward", 2, { argument: { shape } });
        const [sum, gathered] = scope(() => {
          const slice = [(shape[0] as number) / 2, ...shape.slice(1)];
          const gradients = [10, 11].map((rank) => valuesOfRank(rank, slice, "float16"));
          return [reduced(allBrought(2, shape, "float16"), "sum"), ops.cat(gradients, 0)].map((x) =>
            x.toTypedArray(),
          );
        }) as [TypedArray, TypedArray];
        const half = sum.length / 2;
        expect(valuesOf(outcomes)).toEqual(
          [0, 1].map((rank) => [sum.slice(half * rank, half * (rank + 1)), gathered]),
        );
      },
    );

    it.runIf(waitsTell)("fail with the group's own error when a rank has gone", async () => {
      const [first, second] = await members.run("backwardWithOneLess", 2);
      expect(first).toMatchObject({ code: "COLLECTIVE_ABORTED" });
      expect(second).toEqual({ value: undefined });
    });
  });
}
