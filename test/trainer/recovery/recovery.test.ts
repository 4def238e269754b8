import { describe, expect, it } from "vitest";
import type { LastGood } from "../../../src/actors/trainer/recovery/last-good.ts";
import { Recovery, type RestartPoint } from "../../../src/actors/trainer/recovery/recovery.ts";
import type { SupervisedRanks } from "../../../src/actors/trainer/recovery/supervised-ranks.ts";
import { TroupeError } from "../../../src/errors/index.ts";
import { type Failure, toFailure } from "../../../src/runtime/index.ts";

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
