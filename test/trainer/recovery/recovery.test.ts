import { describe, expect, it } from "vitest";
import type { LastGood } from "../../../src/actors/trainer/recovery/last-good.ts";
import { Recovery, type RestartPoint } from "../../../src/actors/trainer/recovery/recovery.ts";
import type { SupervisedRanks } from "../../../src/actors/trainer/recovery/supervised-ranks.ts";
import { TroupeError } from "../../../src/errors/index.ts";
import { ActorDown, type Failure, toFailure } from "../../../src/runtime/index.ts";

const full = new TroupeError("SHARED_MEMORY_FULL", {
  where: "shared memory",
  expected: "room for 4096 bytes",
  got: "none",
});
const at = { initial: { kind: "seed", step: 0, seed: 1 }, sampler: {} } as RestartPoint;
const saved = { kind: "checkpoint", step: 4, path: "step-000004", progress: { numUpdates: 4 } };

/** Recovers from `error` in a generation; the next generation begins once a rank of this one was ended. */
async function recover(error: TroupeError, generation: number) {
  const ended: Failure[] = [];
  const begun = Promise.withResolvers<Failure>();
  const ranks = {
    async endFirst(failure: TroupeError) {
      ended.push(toFailure(failure));
      begun.resolve(toFailure(failure));
    },
    generationAfter: () => begun.promise,
  };
  const lastGood = { newest: async () => saved };
  const recovery = new Recovery(ranks as unknown as SupervisedRanks, lastGood as unknown as LastGood);
  const taken = await recovery.after(error, generation, at).catch((caught: unknown) => caught);
  return { taken, ended };
}

describe("memory that processes share and that is full", () => {
  it("starts the group again where it was full only when a rank was replaced", async () => {
    const { taken, ended } = await recover(full, 1);
    expect(ended).toMatchObject([{ code: "SHARED_MEMORY_FULL" }]);
    expect(taken).toEqual({ ...at, initial: saved });
  });

  it("ends the run at once where it is full at the start", async () => {
    const { taken, ended } = await recover(full, 0);
    expect(taken).toBe(full);
    expect(ended).toEqual([]);
  });
});

/** Recovers from the end of an actor, where the group that has rank-0 lives on. @returns what was done to the group */
async function recoverFrom(actor: string): Promise<string[]> {
  const done: string[] = [];
  const ranks = {
    has: (name: string) => name === "rank-0",
    renew: async () => void done.push("renewed"),
    generationAfter: async () => void done.push("awaited"),
  };
  const lastGood = { newest: async () => saved };
  const recovery = new Recovery(ranks as unknown as SupervisedRanks, lastGood as unknown as LastGood);
  const down = new ActorDown("ask", { actor, incarnation: 1, reason: "failed" });
  expect(await recovery.after(down, 0, at)).toEqual({ ...at, initial: saved });
  return done;
}

describe("an actor that is lost", () => {
  it("ends its generation where it is the group's, and else has the group begun again, which would live on", async () => {
    expect(await recoverFrom("rank-0")).toEqual(["awaited"]);
    expect(await recoverFrom("checkpointer")).toEqual(["renewed"]);
  });
});
