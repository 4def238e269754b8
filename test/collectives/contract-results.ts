import { describe, expect, it } from "vitest";
import { ops, scope, type TypedArray } from "../../src/compute/tensor/index.ts";
import { valuesOfRank } from "../fixtures/collectives/values.ts";
import { allBrought, ranks, reduced } from "./expected.ts";
import { type Members, valuesOf } from "./members.ts";

const floats = ["float32", "float64", "bfloat16", "float16"] as const;
const reductions = ["sum", "avg", "max", "min", "prod"] as const;

function bytesOf(values: TypedArray): Buffer {
  return Buffer.from(values.buffer, values.byteOffset, values.byteLength);
}

/** The results, bit for bit, and the order of operations. */
export function describeResults(members: Members): void {
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

    it.each(["float32", "bfloat16", "int64", "bool"] as const)("gathers %s in rank order", async (dtype) => {
      const argument = { shape: [5, 3], dtype };
      const expected = scope(() => ops.cat(allBrought(3, [5, 3], dtype), 0).toTypedArray());
      for (const scenario of ["allGather", "allGatherInPlace"] as const)
        for (const value of valuesOf(await members.run(scenario, 3, { argument })))
          expect(value).toEqual(expected);
    });

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
      for (const value of valuesOf(await members.run("gatherRanks", 4))) expect(value).toEqual([0, 1, 2, 3]);
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
    it.each([100, 1_000_000])("runs %d elements in the order of issue, waited for in any", async (numel) => {
      const sums = ranks(6).map((index) => 1 + index + (2 + index));
      const expected = [...sums, 13].map((sum) => [sum, sum]);
      expect(valuesOf(await members.run("overlapped", 2, { argument: { numel } }))).toEqual([
        expected,
        expected,
      ]);
    });

    it("makes progress while nobody waits", async () => {
      expect(valuesOf(await members.run("donePolled", 2))).toEqual(ranks(2).map(() => [true, 2 * (1 << 18)]));
    });

    it("holds over many small operations", async () => {
      const sum = ranks(500).reduce((all, i) => all + 3 * i + 3, 0);
      expect(valuesOf(await members.run("manySmall", 3, { argument: { count: 500 } }))).toEqual([
        sum,
        sum,
        sum,
      ]);
    });

    it.each([1, 2, 3])(
      "holds over a random program with several operations under way (seed %d)",
      async (seed) => {
        const outcomes = await members.run("randomProgram", 3, { argument: { seed, numSteps: 120 } });
        expect(valuesOf(outcomes)).toEqual([0, 0, 0]);
      },
    );

    it("lets nobody past a barrier before all have come to it (BMTrain's synchronize)", async () => {
      const times = valuesOf<[bigint, bigint]>(await members.run("barrier", 3));
      for (const [, after] of times) expect(times.filter(([before]) => before > after)).toEqual([]);
    });
  });
}
