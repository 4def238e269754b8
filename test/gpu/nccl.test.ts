import { afterAll, describe, expect, it } from "vitest";
import { openCommunicator } from "../../src/compute/collectives/index.ts";
import { deviceCount, onDevice } from "../../src/compute/tensor/index.ts";
import { describeCollectives } from "../collectives/contract.ts";
import { Members, valuesOf } from "../collectives/members.ts";
import { runTiny, Workspace } from "../fixtures/run-tiny.ts";
import { normal } from "../kernels/inputs.ts";
import { numbers } from "../tensor/numbers.ts";
import { back, hasGpu, onGpu } from "./gpu.ts";

const numGpus = deviceCount("cuda");
if (numGpus === 1)
  console.warn(
    "\n*** ONE GPU: NCCL between several is not proved here; with two runs by it, with four its contract ***\n",
  );

it.skipIf(!hasGpu)(
  "a group of one by NCCL gives each collective's own input back, behind what computed it",
  () => {
    using group = onDevice("cuda:0", () =>
      openCommunicator({ backend: "nccl", name: "alone", rank: 0, size: 1, deadlineMs: 60_000 }),
    );
    const values = normal([1000], 1);
    for (let round = 0; round < 3; round++) {
      const computed = onGpu(values).mul(2).add(round);
      const expected = numbers(values.mul(2).add(round));
      group.allReduce(computed).wait();
      expect(numbers(back(computed))).toEqual(expected);
      const gathered = computed.mul(0);
      group.allGather(gathered, computed).wait();
      expect(numbers(back(gathered))).toEqual(expected);
      const scattered = computed.mul(0);
      group.reduceScatter(scattered, computed).wait();
      expect(numbers(back(scattered))).toEqual(expected);
      group.broadcast(computed, 0).wait();
      group.barrier();
    }
  },
);

describe.skipIf(numGpus < 2)("between two GPUs", () => {
  const workspace = new Workspace();
  afterAll(() => workspace[Symbol.dispose]());

  it.each([
    { ranks: 2, zero: 0 },
    { ranks: 2, zero: 3 },
    { ranks: 2, tp: 2 },
    { ranks: 2, pp: 2, accumulation: 2 },
  ] as const)("a run by NCCL has the losses of one by references and copies: %j", async (options) => {
    const expected = await runTiny(workspace, { ...options, device: "cuda" });
    const outcome = await runTiny(workspace, {
      ...options,
      device: "cuda",
      placement: "process",
      carrier: "nccl",
    });
    expect([outcome.error, expected.error]).toEqual([undefined, undefined]);
    expect(outcome.losses).toEqual(expected.losses);
  });

  it("NCCL's own sums are the same on every rank, and near those in rank order", async () => {
    const argument = { shape: [3, 37], dtype: "float32", op: "sum" } as const;
    const sums = await Promise.all(
      (["direct", "ordered"] as const).map(async (reduction) => {
        const members = new Members({ backend: "nccl", placement: "process", onDevices: "cuda", reduction });
        const outcomes = await members.run("allReduce", 2, { argument, deadlineMs: 120_000 });
        await members.stop();
        return valuesOf<Float32Array>(outcomes);
      }),
    );
    const [direct, ordered] = sums as [Float32Array[], Float32Array[]];
    expect(direct[1]).toEqual(direct[0]);
    for (const [index, value] of direct[0]?.entries() ?? [])
      expect(value).toBeCloseTo(ordered[0]?.[index] as number, 5);
  });
});

describe.skipIf(numGpus < 4)("between four GPUs", () => {
  describeCollectives({ backend: "nccl", placement: "thread", onDevices: "cuda" });
  describeCollectives({ backend: "nccl", placement: "process", onDevices: "cuda", checked: true });
});
