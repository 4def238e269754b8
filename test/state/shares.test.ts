import { mkdtempSync, rmSync } from "node:fs";
import { cp, mkdir, readdir, rm } from "node:fs/promises";
import { hostname, tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, describe, expect, it } from "vitest";
import type { SaveOrder, SliceOrder, SliceWriter, SpreadSave } from "../../src/actors/protocols/index.ts";
import { StoredValues } from "../../src/actors/state/initial/stored-values.ts";
import {
  PartCollection,
  planShares,
  tidyApart,
  writeShare,
  writeShares,
} from "../../src/actors/state/saving/index.ts";
import { LocalFolder } from "../../src/entries/checkpoint.ts";
import { joinFolders, openCheckpoint, verifyCheckpoint } from "../../src/library/checkpoint/index.ts";
import { fewParameters, type Spread, SpreadState } from "../fixtures/spread-state.ts";

const folder = mkdtempSync(join(tmpdir(), "troupe-test-"));
afterAll(() => rmSync(folder, { recursive: true }));

const progress = { numUpdates: 3 };
const state = { step: 3, seed: 1, samplesConsumed: 12, job: null, tokenizer: null };

/** Saves numbered state by a writer a rank. @param folders - of each rank; the run's, rank 0's, where left out */
async function save(run: string, spread: Spread, folders: readonly string[] = []): Promise<string> {
  using saved = new SpreadState(fewParameters, spread).number();
  const collections = saved.sent.map(() => new PartCollection(0, 3));
  const tidied: Promise<void>[] = [];
  const writers = collections.map((collection, rank): SliceWriter => {
    const place = folders[rank] ?? run;
    return {
      isApart: place !== run,
      ref: {
        ask: (_kind: string, order: SliceOrder) =>
          writeShare(new LocalFolder(place), rank, order, collection),
        tell: (_kind: string, order: Parameters<typeof tidyApart>[1]) =>
          tidied.push(tidyApart(new LocalFolder(place), order)),
      } as unknown as SliceWriter["ref"],
    };
  });
  for (const part of saved.parts(0, 3).toReversed()) collections[part.rank]?.add(part);
  collections[0]?.setProgress(progress);
  const order: SaveOrder = {
    ...saved.plan,
    generation: 0,
    texts: { config: {} },
    state,
    write: true,
    keep: false,
  };
  const parted: SpreadSave = { writers, shares: planShares(saved.sent, saved.plan), deadlineMs: 1000 };
  const writing = { storage: new LocalFolder(run), keep: undefined, report: () => {} };
  try {
    return (await writeShares(writing, order, parted)).path;
  } finally {
    await Promise.all(tidied);
    for (const collection of collections) collection[Symbol.dispose]();
  }
}

async function isRight(path: string, spread: Spread): Promise<boolean> {
  using loaded = new SpreadState(fewParameters, spread);
  for (const { state } of loaded.states) {
    await using values = await StoredValues.open({ kind: "checkpoint", step: 3, path, progress });
    await values.fill(state);
  }
  return loaded.isNumbered;
}

const spreads = fc.record({
  tp: fc.constantFrom(1, 2, 3, 4),
  dp: fc.constantFrom(1, 2, 3),
  zero: fc.constantFrom<(0 | 1 | 2 | 3)[]>(0, 1, 2, 3),
});

describe("a checkpoint that each rank's host has written its share of", () => {
  it("holds each element once, and fills every other layout to the bit", async () => {
    let count = 0;
    await fc.assert(
      fc.asyncProperty(spreads, spreads, async (from, to) => {
        const path = await save(join(folder, `any-${count++}`), from);
        expect(await isRight(path, to)).toBe(true);
      }),
      { seed: 7, numRuns: 12 },
    );
  });

  it("a checkpoint of hosts without a shared folder has a folder on each host, names the owner of each part, and is complete once joined", async () => {
    const [run, other] = [join(folder, "of-a"), join(folder, "of-b")] as const;
    const spread = { tp: 4, dp: 1, zero: 3 } as const;
    await mkdir(join(other, "step-000001"), { recursive: true });
    await cp(import.meta.filename, join(other, "step-000001", "model-rank-00002-00000000.safetensors"));
    const path = await save(run, spread, [run, run, other, other]);
    // Leftovers of an earlier save belong to no checkpoint.
    expect(await readdir(other)).toEqual(["step-000003"]);
    expect((await readdir(join(other, "step-000003"))).toSorted()).toMatchObject(
      [2, 3, 2, 3].map((rank, index) =>
        expect.stringMatching(
          new RegExp(`^${index < 2 ? "model" : "optimizer"}-rank-0000${rank}-[0-9a-f]{8}\\.safetensors$`),
        ),
      ),
    );
    await expect(isRight(path, { tp: 1, dp: 1, zero: 0 })).rejects.toMatchObject({
      code: "CHECKPOINT_ELSEWHERE",
      message: expect.stringContaining(`none: ${hostname()} keeps it on a disk of its own`),
    });
    expect(await verifyCheckpoint(new LocalFolder(run), "step-000003")).not.toEqual([]);
    await expect(joinFolders(path, [folder])).rejects.toMatchObject({ code: "CHECKPOINT_ELSEWHERE" });
    expect(await joinFolders(path, [other])).toHaveLength(4);
    expect(await joinFolders(path, [other])).toEqual([]);
    expect(await verifyCheckpoint(new LocalFolder(run), "step-000003")).toEqual([]);
    for (const to of [spread, { tp: 1, dp: 3, zero: 1 }] as const) expect(await isRight(path, to)).toBe(true);
  });

  it("is tidied up after without the shares of a later step, whose save may be under way", async () => {
    const other = join(folder, "later-b");
    const share = "model-rank-00001-00000000.safetensors";
    for (const step of ["step-000002", "step-000004"]) {
      await mkdir(join(other, step), { recursive: true });
      await cp(import.meta.filename, join(other, step, share));
    }
    await tidyApart(new LocalFolder(other), { present: ["step-000003"], step: 3, ticket: "a-ticket" });
    expect(await readdir(other)).toEqual(["step-000004"]);
    expect(await readdir(join(other, "step-000004"))).toEqual([share]);
  });

  it("is not there, and leaves nothing behind, where one writer fails; the one before of that step stays", async () => {
    const [run, other] = [join(folder, "failing"), join(folder, "failing-b")] as const;
    const spread = { tp: 2, dp: 1, zero: 2 } as const;
    const path = await save(run, spread, [run, other]);
    const before = await readdir(join(other, "step-000003"));
    // No folder can be made where a file is.
    await cp(import.meta.filename, join(folder, "file"));
    await expect(save(run, spread, [join(folder, "file"), other])).rejects.toThrow();
    expect(await readdir(run)).toEqual(["latest", "step-000003"]);
    expect(await readdir(join(other, "step-000003"))).toEqual(expect.arrayContaining(before));
    await joinFolders(path, [other]);
    expect(await isRight(path, spread)).toBe(true);
    await rm(join(folder, "file"));
    await using opened = await openCheckpoint(run);
    expect(opened.state.step).toBe(3);
  });
});
