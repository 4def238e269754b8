import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { liveTensors, scope, tensor } from "../../src/compute/tensor/index.ts";
import { openCheckpoint } from "../../src/library/checkpoint/reading/open-checkpoint.ts";
import {
  CheckpointDraft,
  type CheckpointPlan,
} from "../../src/library/checkpoint/saving/checkpoint-draft.ts";
import { entryOf } from "../../src/library/checkpoint/saving/tensor-files.ts";
import { LocalFolder } from "../../src/library/checkpoint/storage/local-folder.ts";
import { SummedWriter } from "../../src/library/checkpoint/storage/summed-file.ts";
import { contentOf } from "./content.ts";
import { refusal } from "./refusal.ts";

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "troupe-draft-"));
});
afterEach(() => rm(folder, { recursive: true }));

const plan: CheckpointPlan = {
  step: 7,
  config: { model_type: "gpt2" },
  // In an order of the caller's own.
  weights: [
    { name: "z", dtype: "F32", shape: [2, 3] },
    { name: "a", dtype: "F32", shape: [4] },
  ],
  optimizer: [{ name: "exp_avg.z", dtype: "F32", shape: [2, 3] }],
};
const state = { ...contentOf(7).state };
const floats = (...values: number[]) => new Uint8Array(Float32Array.from(values).buffer);

async function valuesOf(name: string, numel: number): Promise<number[]> {
  await using checkpoint = await openCheckpoint(folder);
  return [...new Float32Array((await checkpoint.read(name, new Uint8Array(4 * numel))).buffer)];
}

test("a file that the disk has no room for leaves nothing", async ({ skip }) => {
  const path = join(folder, "vast");
  const writer = await SummedWriter.create(path, 4096, 2 ** 52).catch((error: unknown) => error);
  if (writer instanceof SummedWriter) return skip("this file system reserves nothing");
  expect(writer).toMatchObject({ code: "FILE_WRITE" });
  expect(await readdir(folder)).toEqual([]);
});

describe("a draft", () => {
  test("takes ranges of tensors and bytes as they come, weights and optimizer in any turn, and tells how far it is", async () => {
    const progress: number[] = [];
    const onProgress = (written: number, planned: number) => progress.push(written, planned);
    await using draft = await CheckpointDraft.begin(new LocalFolder(folder), plan, { onProgress });
    const shard = tensor([9, 1, 2, 3, 4, 5, 6, 9]);
    expect(draft.plannedBytes).toBe(64);
    await draft.write("z", { tensor: shard, begin: 1, numel: 2 });
    await draft.write("exp_avg.z", floats(6, 5, 4));
    await draft.write("z", { tensor: shard, begin: 3, numel: 4 });
    await draft.write("exp_avg.z", floats(3, 2, 1));
    await draft.write("a", floats());
    await draft.write("a", floats(1, 1, 2, 3));
    expect([draft.writtenBytes, progress.slice(0, 4)]).toEqual([64, [8, 64, 20, 64]]);
    const { path, pruned } = await draft.commit(state);
    expect([path, pruned]).toEqual([join(folder, "step-000007"), { removed: [], failed: [] }]);
    expect(await valuesOf("z", 6)).toEqual([1, 2, 3, 4, 5, 6]);
    expect(await valuesOf("exp_avg.z", 6)).toEqual([6, 5, 4, 3, 2, 1]);
    expect(await valuesOf("a", 4)).toEqual([1, 1, 2, 3]);
    shard.dispose();
  });

  test("a draft has written the memory when a write ends: it may then change or be freed", async () => {
    await using draft = await CheckpointDraft.begin(new LocalFolder(folder), plan);
    const before = liveTensors();
    const bytes = floats(1, 2, 3, 4, 5, 6);
    await draft.write("z", bytes);
    bytes.fill(0);
    const shard = tensor([7, 7, 7, 7]);
    await draft.write("a", shard);
    scope(() => shard.fill_(0));
    shard.dispose();
    await draft.write("exp_avg.z", floats(0, 0, 0, 0, 0, 0));
    expect(liveTensors()).toBe(before);
    await draft.commit(state);
    expect(await valuesOf("z", 6)).toEqual([1, 2, 3, 4, 5, 6]);
    expect(await valuesOf("a", 4)).toEqual([7, 7, 7, 7]);
  });

  test("holds parts of a tensor under names of their own, each a slice of it", async () => {
    const parts = [0, 2].map((column) => ({
      name: "w",
      dtype: "F32" as const,
      shape: [2, 2 - (column >> 1)],
      part: { of: [2, 3], offset: [0, column] },
    }));
    await using draft = await CheckpointDraft.begin(new LocalFolder(folder), {
      ...plan,
      weights: parts,
      optimizer: [],
    });
    expect(parts.map(entryOf)).toEqual(["w[0,0]", "w[0,2]"]);
    await draft.write("w[0,0]", floats(1, 2, 4, 5));
    await draft.write("w[0,2]", floats(3, 6));
    await draft.commit(state);
    expect(await valuesOf("w", 6)).toEqual([1, 2, 3, 4, 5, 6]);
  });

  test("refuses bytes out of turn, too many, too few, of nothing that is planned, and another step", async () => {
    const storage = new LocalFolder(folder);
    const six = floats(1, 2, 3, 4, 5, 6);
    const attempts: ((draft: CheckpointDraft) => Promise<unknown>)[] = [
      (draft) => draft.write("a", six),
      (draft) => draft.write("b", six),
      (draft) => draft.write("z", new Uint8Array(28)),
      (draft) => draft.write("z", six).then(() => draft.write("z", six)),
      (draft) => draft.write("z", six).then(() => draft.commit(state)),
    ];
    for (const attempt of attempts) {
      await using draft = await CheckpointDraft.begin(storage, plan);
      const error = await refusal(() => attempt(draft));
      expect(error).toMatchObject({ code: "CHECKPOINT_SAVE_FAILED", cause: { code: "SAFETENSORS_TENSOR" } });
    }
    await using draft = await CheckpointDraft.begin(storage, { ...plan, weights: [], optimizer: [] });
    const other = await refusal(() => draft.commit({ ...state, step: 8 }));
    expect(other.cause).toMatchObject({ code: "CHECKPOINT_OPTION" });
    await draft.abandon();
    expect(await readdir(folder)).toEqual([]);
  });

  test("a draft that is abandoned at any point leaves nothing", async () => {
    const storage = new LocalFolder(folder);
    for (const count of [0, 1, 2]) {
      const draft = await CheckpointDraft.begin(storage, plan);
      if (count > 0) await draft.write("z", floats(1, 2, 3, 4, 5, 6));
      if (count > 1) await draft.write("a", floats(1, 2, 3, 4));
      await draft.abandon();
      expect(await readdir(folder)).toEqual([]);
    }
  });

  test("a draft keeps checksums of its data, over chunks and appends of any size", async () => {
    const numel = 900_000;
    const values = Float32Array.from({ length: numel }, (_, i) => Math.sqrt(i));
    for (const chunkBytes of [100_000, 4096, 1 << 20, 3 << 19]) {
      const big = {
        ...plan,
        weights: [{ name: "big", dtype: "F32", shape: [numel] }],
        optimizer: [],
      } as const;
      await using draft = await CheckpointDraft.begin(new LocalFolder(folder), big, { chunkBytes });
      for (let begin = 0, size = 1; begin < numel; begin += size, size = 3 * size + 1) {
        await draft.write("big", new Uint8Array(values.buffer).subarray(4 * begin, 4 * (begin + size)));
      }
      await draft.commit(state);
      expect(Float32Array.from(await valuesOf("big", numel))).toEqual(values);
    }
  });

  test.each([
    { maxFileBytes: 0 },
    { maxFileBytes: Number.NaN },
    { chunkBytes: 0 },
    { chunkBytes: 1.5 },
    { chunkBytes: 2 ** 30 },
  ])("refuses %o", async (options) => {
    const error = await refusal(() => CheckpointDraft.begin(new LocalFolder(folder), plan, options));
    expect(error).toMatchObject({ code: "CHECKPOINT_OPTION", fields: { option: Object.keys(options)[0] } });
    expect(await readdir(folder)).toEqual([]);
  });
});
