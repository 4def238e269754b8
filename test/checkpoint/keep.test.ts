import { mkdir, mkdtemp, readdir, readFile, rm, truncate, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { listCheckpoints } from "../../src/library/checkpoint/reading/inventory.ts";
import { namedIn, nameState } from "../../src/library/checkpoint/reading/named-states.ts";
import { openCheckpoint } from "../../src/library/checkpoint/reading/open-checkpoint.ts";
import { type KeepRule, prune } from "../../src/library/checkpoint/saving/prune.ts";
import { writeCheckpoint } from "../../src/library/checkpoint/saving/save-checkpoint.ts";
import { LocalFolder } from "../../src/library/checkpoint/storage/local-folder.ts";
import { contentOf } from "./content.ts";
import { refusal } from "./refusal.ts";

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "troupe-keep-"));
});
afterEach(() => rm(folder, { recursive: true }));

async function save(steps: readonly number[], keep?: KeepRule): Promise<void> {
  for (const step of steps)
    await writeCheckpoint(folder, contentOf(step), keep === undefined ? {} : { keep });
}

async function stepsIn(): Promise<number[]> {
  return (await listCheckpoints(folder)).map(({ step }) => step);
}

describe("a list of checkpoints", () => {
  test("tells each one's step, size, damage and whether it is the latest, the highest step first", async () => {
    await save([1, 3, 2]);
    await truncate(join(folder, "step-000001", "model.safetensors"), 10);
    const list = await listCheckpoints(folder);
    expect(list.map(({ name, step, latest }) => [name, step, latest])).toEqual([
      ["step-000003", 3, false],
      ["step-000002", 2, true],
      ["step-000001", 1, false],
    ]);
    expect(list.map(({ damage }) => damage?.code)).toEqual([undefined, undefined, "CHECKPOINT_DAMAGED"]);
    const files = await readdir(join(folder, "step-000003"));
    const sizes = files.map(async (name) => (await readFile(join(folder, "step-000003", name))).length);
    expect(list[0]?.sizeBytes).toBe((await Promise.all(sizes)).reduce((a, b) => a + b));
  });

  test("is that of one where its own folder is named, and empty where there is nothing", async () => {
    await save([1, 2]);
    expect((await listCheckpoints(join(folder, "step-000001"))).map(({ step }) => step)).toEqual([1]);
    expect(await listCheckpoints(join(folder, "nowhere"))).toEqual([]);
  });

  test("a rule of what to keep ignores folders that are no checkpoints", async () => {
    await save([1]);
    await writeFile(join(folder, "events.jsonl"), "");
    await writeFile(join(folder, "step-7"), "");
    expect(await stepsIn()).toEqual([1]);
  });
});

describe("a rule of what to keep", () => {
  test("keeps the newest k, and every n-th, after each save", async () => {
    await save([2, 4, 6, 8, 10, 12, 14], { last: 2, every: 6 });
    expect(await stepsIn()).toEqual([14, 12, 6]);
    await using checkpoint = await openCheckpoint(folder);
    expect(checkpoint.state.step).toBe(14);
  });

  test("a rule of what to keep reports the removed checkpoints", async () => {
    await save([1, 2, 3]);
    expect(await prune(new LocalFolder(folder), { last: 1 })).toEqual({
      removed: ["step-000002", "step-000001"],
      failed: [],
    });
  });

  test("never takes the one that latest names, though it is an older step", async () => {
    await save([5, 6, 3]);
    await prune(new LocalFolder(folder), { last: 1 });
    expect(await stepsIn()).toEqual([6, 3]);
  });

  test("does not count a damaged one, nor take one that is newer than those that count", async () => {
    await save([1, 2, 3, 4]);
    for (const step of [3, 4]) await rm(join(folder, `step-00000${step}`, "manifest.json"));
    await prune(new LocalFolder(folder), { last: 1 });
    expect(await stepsIn()).toEqual([4, 3, 2]);
  });

  test("removes nothing while the file with the names is damaged", async () => {
    await save([1, 2, 3]);
    await writeFile(join(folder, "named.json"), '{"best":{"step":1');
    const error = await refusal(() => prune(new LocalFolder(folder), { last: 1 }));
    expect(error.code).toBe("JSON_INVALID");
    await writeFile(join(folder, "named.json"), '{"best":{"step":1}}');
    await prune(new LocalFolder(folder), { last: 1 });
    expect(await stepsIn()).toEqual([3, 1]);
  });

  test("keeps every checkpoint that has a name, however many names there are", async () => {
    await save([1, 2, 3]);
    const many = Array.from({ length: 5_000 }, (_, index) => [`try-${index}`, { step: 1, metric: index }]);
    await writeFile(join(folder, "named.json"), JSON.stringify(Object.fromEntries(many)));
    const storage = new LocalFolder(folder);
    await nameState(storage, { as: "best" }, 2);
    await prune(storage, { last: 1 });
    expect(await stepsIn()).toEqual([3, 2, 1]);
    expect(Object.keys(await namedIn(storage))).toHaveLength(5_001);
    await truncate(join(folder, "named.json"), (16 << 20) + 1);
    const error = await refusal(() => prune(storage, { last: 1 }));
    expect(error.message).toContain(`expected at most 16777216 bytes in ${join(folder, "named.json")}`);
    expect(await readdir(folder)).toContain("step-000001");
  });

  test("removes no folder without a manifest, which is no checkpoint", async () => {
    await save([1, 3, 4]);
    await mkdir(join(folder, "step-000002"));
    await writeFile(join(folder, "step-000002", "notes.txt"), "mine");
    expect((await prune(new LocalFolder(folder), { last: 1 })).removed).toEqual([
      "step-000003",
      "step-000001",
    ]);
    expect(await readFile(join(folder, "step-000002", "notes.txt"), "utf8")).toBe("mine");
  });

  test("old checkpoints are pruned only once the new one is durable: a save that fails removes nothing", async () => {
    await save([1, 2]);
    const content = contentOf(3);
    const weights = content.weights.map((source) => ({ ...source, read: () => new Uint8Array(1) }));
    await refusal(() => writeCheckpoint(folder, { ...content, weights }, { keep: { last: 1 } }));
    expect(await stepsIn()).toEqual([2, 1]);
  });

  test.each([{ last: 0 }, { last: 1.5 }, { last: 1, every: 0 }, { last: Number.NaN }])(
    "of %o is refused before anything is written",
    async (keep) => {
      await save([1]);
      const error = await refusal(() => writeCheckpoint(folder, contentOf(2), { keep }));
      expect(error.code).toBe("CHECKPOINT_OPTION");
      expect(await stepsIn()).toEqual([1]);
    },
  );
});

describe("a removal", () => {
  test("that was cut short is no checkpoint any more, and is swept", async () => {
    await save([1, 2]);
    const half = join(folder, ".removing-step-000001-00000000-0000-4000-8000-000000000000");
    await writeFile(half, "");
    expect(await stepsIn()).toEqual([2, 1]);
    await new LocalFolder(folder).sweep();
    expect((await readdir(folder)).toSorted()).toEqual(["latest", "step-000001", "step-000002"]);
  });
});
