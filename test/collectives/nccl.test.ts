import { once } from "node:events";
import { Worker } from "node:worker_threads";
import { afterAll, describe, expect, it } from "vitest";
import { nativeInfo } from "../../src/compute/tensor/index.ts";
import { pretendNccl } from "../devices/pretend-nccl.ts";
import { pretend } from "../fixtures/devices/pretend.ts";
import type { StreamsRank } from "../fixtures/devices/streams-rank.ts";
import { describeCollectives } from "./contract.ts";
import { Members, valuesOf } from "./members.ts";

// On pretend devices, by a pretend NCCL: what Troupe makes of NCCL, and not NCCL itself.
describe.skipIf(!nativeInfo().gloo)("NCCL, where the addon has Gloo", () => {
  const nccl = pretendNccl(4);
  const ofThreads = new Members({ backend: "nccl", placement: "thread", onDevices: "sim" });
  const ofProcesses = new Members({ backend: "nccl", placement: "process", onDevices: "sim" });
  afterAll(async () => {
    await Promise.all([ofThreads.stop(), ofProcesses.stop()]);
    nccl[Symbol.dispose]();
  });

  describeCollectives({ backend: "nccl", placement: "thread", onDevices: "sim" });
  describeCollectives({ backend: "nccl", placement: "process", onDevices: "sim", checked: true });

  it("are reduced, gathered and sent behind what each rank has computed, and read behind the result", async () => {
    const size = 3;
    for (const seed of [1, 2]) {
      pretend().simSeed(seed);
      const ranks = Array.from({ length: size }, (_, rank) => {
        const workerData: StreamsRank = {
          ...{ name: `nccl-streams-${seed}`, backend: "nccl", device: `sim:${rank}`, rank, size, rounds: 10 },
        };
        return new Worker(new URL("../fixtures/devices/streams-rank.ts", import.meta.url), { workerData });
      });
      const wrong = await Promise.all(
        ranks.map(async (rank) => (await once(rank, "message"))[0] as string[]),
      );
      await Promise.all(ranks.map((rank) => rank.terminate()));
      expect(wrong).toEqual(wrong.map(() => []));
    }
  });

  it("adds in an order of its own where that is asked for, the same on every rank", async () => {
    const argument = { shape: [3, 37], dtype: "float32", op: "sum" } as const;
    const direct = new Members({
      backend: "nccl",
      placement: "thread",
      onDevices: "sim",
      reduction: "direct",
    });
    const [own, ordered] = await Promise.all(
      [direct, ofThreads].map(async (members) =>
        valuesOf<Float32Array>(await members.run("allReduce", 3, { argument })),
      ),
    );
    await direct.stop();
    expect(own?.[1]).toEqual(own?.[0]);
    expect(own?.[0]).not.toEqual(ordered?.[0]);
    for (const [index, value] of own?.[0]?.entries() ?? [])
      expect(value).toBeCloseTo(ordered?.[0]?.[index] as number, 5);
  });

  describe("ranks that are late, unchecked", () => {
    it.each([
      [
        "does something else",
        "broadcastAwaited",
        "COLLECTIVE_MISMATCH",
        /rank 1 #2 broadcast\(float32\[100000\]/,
      ],
      [
        "does not come",
        "barrierOnly",
        "COLLECTIVE_TIMEOUT",
        /#2 allReduce\(float32\[4\], sum\).*rank 1 did not come/,
      ],
      ["has left", "leaves", "COLLECTIVE_ABORTED", /rank 1/],
      ["has ended", "exits", "COLLECTIVE_ABORTED", /rank 1/],
      ["aborts", "aborts", "COLLECTIVE_ABORTED", /rank 1/],
    ] as const)("are named: rank 1 %s", async (_, other, code, who) => {
      const { outcomes } = ofProcesses.start(["sumAwaited", other], 2, {
        deadlineMs: 3_000,
        argument: { untilMs: 6_000 },
      });
      expect(await outcomes[0]).toMatchObject({ code, message: expect.stringMatching(who) });
      await outcomes[1];
    });

    it("let a group be, whose transfers are only slow to begin", async () => {
      const { outcomes } = ofProcesses.start(["sumAwaited", "sumAwaitedLate"], 2);
      expect(valuesOf(await Promise.all(outcomes))).toEqual([2, 2]);
    });
  });

  it("brings an event loop what all others sent", async () => {
    const rounds = 10;
    const sums = valuesOf<number[]>(await ofProcesses.run("awaitsAll", 3, { argument: { rounds } }));
    sums.forEach((ofRank, rank) => {
      expect(ofRank).toEqual(Array.from({ length: rounds }, (_, round) => 1000 * (3 - rank + 2 * round)));
    });
  });
});
