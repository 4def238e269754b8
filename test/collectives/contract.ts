import { afterAll, describe, expect, it } from "vitest";
import type { ReduceOp } from "../../src/collectives/index.ts";
import { type DType, ops, scope, type Tensor, type TypedArray } from "../../src/tensor/index.ts";
import { gradientCases } from "../fixtures/collectives/gradients.ts";
import { splitLayerInputs } from "../fixtures/collectives/scenarios.ts";
import { valuesOfRank } from "../fixtures/collectives/values.ts";
import { Members, type Setting, valuesOf } from "./members.ts";

const floats = ["float32", "float64", "bfloat16", "float16"] as const;
const reductions = ["sum", "avg", "max", "min", "prod"] as const;

/** Ranks' tensors reduced as promised: one after the other in rank order, in float32 where they are narrower. */
function reduced(tensors: readonly Tensor[], op: ReduceOp): Tensor {
  const [first] = tensors as [Tensor];
  const wide = tensors.map((x) => (x.dtype === "bfloat16" || x.dtype === "float16" ? x.to("float32") : x));
  const steps = {
    sum: (a: Tensor, b: Tensor) => a.add(b),
    avg: (a: Tensor, b: Tensor) => a.add(b),
    max: ops.maximum,
    min: ops.minimum,
    prod: (a: Tensor, b: Tensor) => a.mul(b),
  };
  const whole = wide.reduce(steps[op]);
  return (op === "avg" ? whole.div(tensors.length) : whole).to(first.dtype);
}

/** Outputs and gradients of the split layers as one device computes them. */
function wholeLayers(): { y: Tensor; x: Tensor; first: Tensor; second: Tensor } {
  const { x, first, second } = splitLayerInputs();
  const y = x.matmul(first.requiresGrad_()).gelu().matmul(second.requiresGrad_());
  y.square().sum().backward();
  return { y, x: x.grad as Tensor, first: first.grad as Tensor, second: second.grad as Tensor };
}

function ranks(size: number): number[] {
  return Array.from({ length: size }, (_, rank) => rank);
}

function bytesOf(values: TypedArray): Buffer {
  return Buffer.from(values.buffer, values.byteOffset, values.byteLength);
}

/** What every rank of `size` brings, as tensors. */
function allBrought(size: number, shape: readonly number[], dtype: DType): Tensor[] {
  return ranks(size).map((rank) => valuesOfRank(rank, shape, dtype));
}

/** What every backend promises, wherever its ranks live. */
export function describeCollectives(setting: Setting): void {
  describe(`collectives over ${setting.backend} between ${setting.placement === "thread" ? "threads" : "processes"}`, () => {
    const members = new Members(setting);
    afterAll(() => members.stop());

    describe("results", () => {
      it.each(floats.flatMap((dtype) => reductions.map((op) => ({ dtype, op }))))(
        "all-reduces $dtype by $op in rank order, bit for bit",
        async ({ dtype, op }) => {
          const shape = [3, 37];
          const outcomes = await members.run("allReduce", 3, { argument: { shape, dtype, op } });
          const expected = scope(() => reduced(allBrought(3, shape, dtype), op).toTypedArray());
          for (const value of valuesOf(outcomes)) expect(value).toEqual(expected);
        },
      );

      it.each(["int64", "int32", "uint8"] as const)("all-reduces %s exactly", async (dtype) => {
        for (const op of ["sum", "max", "prod"] as const) {
          const outcomes = await members.run("allReduce", 2, { argument: { shape: [19], dtype, op } });
          const expected = scope(() => reduced(allBrought(2, [19], dtype), op).toTypedArray());
          for (const value of valuesOf(outcomes)) expect(value).toEqual(expected);
        }
      });

      it("takes tensors too large for one piece", async () => {
        const argument = { shape: [300_001], dtype: "float32", op: "sum" } as const;
        const expected = scope(() => reduced(allBrought(2, argument.shape, "float32"), "sum").toTypedArray());
        for (const value of valuesOf<TypedArray>(await members.run("allReduce", 2, { argument }))) {
          expect(bytesOf(value).equals(bytesOf(expected))).toBe(true);
        }
      });

      it.each(["allReduce", "allGather", "reduceScatter", "broadcast", "reduce", "allToAllEven"] as const)(
        "%s takes empty tensors and groups of one",
        async (scenario) => {
          const empty = { shape: [0, 3], dtype: "float32" };
          for (const value of valuesOf<TypedArray>(await members.run(scenario, 2, { argument: empty })))
            expect(value).toHaveLength(0);
          const argument = { shape: [3, 5], dtype: "float32" };
          const alone = scope(() => valuesOfRank(0, [3, 5], "float32").toTypedArray());
          expect(valuesOf(await members.run(scenario, 1, { argument }))).toEqual([alone]);
        },
      );

      it.each(["float32", "bfloat16", "int64", "bool"] as const)(
        "gathers %s in rank order",
        async (dtype) => {
          const argument = { shape: [5, 3], dtype };
          const expected = scope(() => ops.cat(allBrought(3, [5, 3], dtype), 0).toTypedArray());
          for (const scenario of ["allGather", "allGatherInPlace"] as const)
            for (const value of valuesOf(await members.run(scenario, 3, { argument })))
              expect(value).toEqual(expected);
        },
      );

      it.each(reductions)("scatters a reduction by %s, also into its own input", async (op) => {
        const argument = { shape: [9, 5], dtype: "float32", op };
        const whole = scope(() => reduced(allBrought(3, [9, 5], "float32"), op).toTypedArray());
        const expected = ranks(3).map((rank) => whole.slice(15 * rank, 15 * (rank + 1)));
        expect(valuesOf(await members.run("reduceScatter", 3, { argument }))).toEqual(expected);
        expect(valuesOf(await members.run("reduceScatterInPlace", 3, { argument }))).toEqual(expected);
      });

      it("broadcasts from every root", async () => {
        for (const root of [0, 2]) {
          const argument = { shape: [7], dtype: "float16", root };
          const expected = scope(() => valuesOfRank(root, [7], "float16").toTypedArray());
          expect(valuesOf(await members.run("broadcast", 3, { argument }))).toEqual([
            expected,
            expected,
            expected,
          ]);
        }
      });

      it("reduces to the root alone, and leaves the others' tensors", async () => {
        const argument = { shape: [7], dtype: "float32", root: 1, op: "sum" };
        const expected = scope(() => {
          const all = allBrought(3, [7], "float32");
          return [all[0], reduced(all, "sum"), all[2]].map((x) => x?.toTypedArray());
        });
        expect(valuesOf(await members.run("reduce", 3, { argument }))).toEqual(expected);
      });

      it("gathers tensors of different first dims", async () => {
        const expected = scope(() =>
          ranks(3).map((rank) => [[rank, 4], valuesOfRank(rank, [rank, 4], "bfloat16").toTypedArray()]),
        );
        const outcomes = await members.run("gatherRagged", 3, {
          argument: { shape: [0, 4], dtype: "bfloat16" },
        });
        for (const value of valuesOf(outcomes)) expect(value).toEqual(expected);
      });

      it("gathers what BMTrain's synchronize and store gather", async () => {
        const whole = new Float32Array(20 * 5).fill(1);
        expect(valuesOf(await members.run("gatherOnes", 4))).toEqual([whole, whole, whole, whole]);
        for (const value of valuesOf(await members.run("gatherRanks", 4)))
          expect(value).toEqual([0, 1, 2, 3]);
      });

      it("sends rows to each rank as the splits say", async () => {
        const outcomes = await members.run("allToAll", 3, { argument: { shape: [0, 2], dtype: "float32" } });
        const expected = scope(() =>
          ranks(3).map((rank) => {
            const parts = ranks(3).map((from) => {
              const begin = ranks(rank).reduce((sum, other) => sum + from + other, 0);
              return valuesOfRank(from, [3 * from + 3, 2], "float32").narrow(0, begin, from + rank);
            });
            return ops.cat(parts, 0).toTypedArray();
          }),
        );
        expect(valuesOf(outcomes)).toEqual(expected);
      });

      it("passes tensors round a ring where all send first", async () => {
        const expected = scope(() =>
          [2, 0, 1].map((rank) => valuesOfRank(rank, [50_000], "float32").toTypedArray()),
        );
        const outcomes = await members.run("exchange", 3, {
          argument: { shape: [50_000], dtype: "float32" },
        });
        expect(valuesOf(outcomes)).toEqual(expected);
      });

      it("sends from stage to stage (BMTrain's send_recv)", async () => {
        const values = valuesOf<Float32Array>(await members.run("sendStage", 4));
        expect(values.map((value) => [...value])).toEqual([
          [1, 1],
          [2, 2],
          [1, 1],
          [2, 2],
        ]);
      });

      it("takes tensors of any strides and leaves what lies between", async () => {
        const outcomes = await members.run("strided", 2, { argument: { op: "sum" } });
        const expected = scope(() => {
          const wide = [0, 1].map((rank) => valuesOfRank(rank, [6, 8], "float32"));
          const sum = reduced(wide, "sum").narrow(1, 2, 3);
          return wide.map((own) => {
            own.narrow(1, 2, 3).copy_(sum);
            return [own.toTypedArray(), ops.cat([sum.t(), sum.t()], 0).toTypedArray()];
          });
        });
        expect(valuesOf(outcomes)).toEqual(expected);
      });
    });

    describe("order", () => {
      it.each([100, 1_000_000])(
        "runs %d elements in the order of issue, waited for in any",
        async (numel) => {
          const sums = ranks(6).map((index) => 1 + index + (2 + index));
          const expected = [...sums, 13].map((sum) => [sum, sum]);
          expect(valuesOf(await members.run("overlapped", 2, { argument: { numel } }))).toEqual([
            expected,
            expected,
          ]);
        },
      );

      it("makes progress while nobody waits", async () => {
        expect(valuesOf(await members.run("donePolled", 2))).toEqual(
          ranks(2).map(() => [true, 2 * (1 << 18)]),
        );
      });

      it("holds over many small operations", async () => {
        const sum = ranks(500).reduce((all, i) => all + 3 * i + 3, 0);
        expect(valuesOf(await members.run("manySmall", 3, { argument: { count: 500 } }))).toEqual([
          sum,
          sum,
          sum,
        ]);
      });

      it("lets nobody past a barrier before all have come to it (BMTrain's synchronize)", async () => {
        const times = valuesOf<[bigint, bigint]>(await members.run("barrier", 3));
        for (const [, after] of times) expect(times.filter(([before]) => before > after)).toEqual([]);
      });
    });

    describe("mistakes", () => {
      it.each([
        ["otherKind", "#1 broadcast(float32[4], root 0)"],
        ["otherShape", "#1 allReduce(float32[5], sum)"],
        ["otherDtype", "#1 allReduce(float64[4], sum)"],
        ["otherReduction", "#1 allReduce(float32[4], max)"],
      ] as const)(
        "%s on one rank is an error on all of them, naming what each called",
        async (scenario, call) => {
          const { outcomes } = members.start(["sumOfFour", scenario], 2);
          for (const outcome of await Promise.all(outcomes)) {
            expect(outcome).toMatchObject({
              code: "COLLECTIVE_MISMATCH",
              message: expect.stringContaining(`rank 0 #1 allReduce(float32[4], sum); rank 1 ${call}`),
            });
          }
        },
      );

      it.each(["sumOfFourThenRoot", "otherSplits", "otherPair", "sendsRagged"] as const)(
        "%s is an error on both ranks",
        async (scenario) => {
          for (const outcome of await members.run(scenario, 2))
            expect(outcome).toMatchObject({ code: "COLLECTIVE_MISMATCH" });
        },
      );

      it("names the place in the program where one rank left something out", async () => {
        const { outcomes } = members.start(["skipsNone", "skipsNone", "skipsOne"], 3);
        for (const outcome of await Promise.all(outcomes)) {
          expect(outcome).toMatchObject({
            code: "COLLECTIVE_MISMATCH",
            message: expect.stringContaining("rank 2 #2 allGather(float32[1])"),
          });
        }
      });

      it.each([
        "root",
        "self",
        "average",
        "indivisible",
        "dtypes",
        "splits",
        "aliased",
        "scalar",
        "operation",
      ])("refuses a wrong argument before it reaches anybody: %s", async (which) => {
        for (const outcome of await members.run("refused", 2, { argument: { which } }))
          expect(outcome).toMatchObject({ code: "COLLECTIVE_ARGUMENT" });
      });
    });

    describe("ranks that do not come", () => {
      it("are named when the deadline has passed", async () => {
        const { outcomes } = members.start(["barrierThenSum", "barrierOnly"], 2, {
          deadlineMs: 300,
          argument: { untilMs: 3_000 },
        });
        expect(await outcomes[0]).toMatchObject({
          code: "COLLECTIVE_TIMEOUT",
          message: expect.stringMatching(/#2 allReduce\(float32\[4\], sum\).* 300 ms .*rank 1 did not come/),
        });
        await outcomes[1];
      });

      it("are known at once when they leave", async () => {
        const { outcomes } = members.start(["barrierThenSum", "leaves", "barrierThenSum"], 3);
        const [first, , last] = await Promise.all(outcomes);
        for (const outcome of [first, last]) expect(outcome).toMatchObject({ code: "COLLECTIVE_ABORTED" });
      });

      it("are known at once when their thread or process ends", async () => {
        const { outcomes } = members.start(["barrierThenSum", "exits"], 2);
        expect(await outcomes[0]).toMatchObject({
          code: "COLLECTIVE_ABORTED",
          message: expect.stringContaining("rank 1"),
        });
        expect(await outcomes[1]).toMatchObject({ code: "ENDED" });
      });

      it("give everyone the reason when they abort", async () => {
        const { outcomes } = members.start(["barrierThenSum", "aborts", "barrierThenSum"], 3);
        const [first, , last] = await Promise.all(outcomes);
        for (const outcome of [first, last]) expect(outcome).toMatchObject({ code: "COLLECTIVE_ABORTED" });
      });
    });

    describe("gradients", () => {
      // Central differences of float64 with steps of 1e-6 are good to about 1e-9.
      it.each(Object.keys(gradientCases))("of %s equal finite differences", async (name) => {
        for (const size of [2, 3])
          for (const difference of valuesOf<number>(
            await members.run("gradients", size, { argument: { name } }),
          ))
            expect(difference).toBeLessThan(1e-7);
      });

      it("of split layers equal those of the whole layers", async () => {
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

      it("fail with the group's own error when a rank has gone", async () => {
        const [first, second] = await members.run("backwardWithOneLess", 2);
        expect(first).toMatchObject({ code: "COLLECTIVE_ABORTED" });
        expect(second).toEqual({ value: undefined });
      });
    });
  });
}
