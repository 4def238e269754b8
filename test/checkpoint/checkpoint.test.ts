import { mkdir, mkdtemp, readdir, readFile, rename, rm, truncate, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { TroupeError } from "../../src/errors/index.ts";
import { stepFolder } from "../../src/library/checkpoint/format/step-folder.ts";
import { HuggingFaceFolder } from "../../src/library/checkpoint/hugging-face.ts";
import { openCheckpoint } from "../../src/library/checkpoint/reading/open-checkpoint.ts";
import { writeCheckpoint } from "../../src/library/checkpoint/saving/save-checkpoint.ts";
import { LocalFolder, replacedPrefix } from "../../src/library/checkpoint/storage/local-folder.ts";
import { contentOf } from "./content.ts";
import { refusal } from "./refusal.ts";

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "troupe-checkpoint-"));
});
afterEach(() => rm(folder, { recursive: true }));

async function stepIn(path: string): Promise<number> {
  await using checkpoint = await openCheckpoint(path);
  const weights = new Float32Array((await checkpoint.read("wte.weight", new Uint8Array(24))).buffer);
  const moments = new Float32Array((await checkpoint.read("exp_avg_sq.h.0.bias", new Uint8Array(24))).buffer);
  expect(new Set(weights)).toEqual(new Set([checkpoint.state.step]));
  expect(new Set(moments)).toEqual(new Set([checkpoint.state.step / 4]));
  return checkpoint.state.step;
}

describe("a checkpoint", () => {
  test("gives back what was saved, from the run's folder or its own", async () => {
    const directory = join(folder, "runs", "gpt");
    const content = contentOf(500);
    const saved = await writeCheckpoint(directory, content);
    expect(saved.path).toBe(join(directory, "step-000500"));
    for (const path of [directory, saved.path]) {
      await using checkpoint = await openCheckpoint(path);
      expect(checkpoint.state).toEqual(content.state);
      expect(checkpoint.config).toEqual(content.config);
      expect(checkpoint.path).toBe(saved.path);
      expect(checkpoint.passedOver).toEqual([]);
      expect(await stepIn(path)).toBe(500);
    }
    expect((await readdir(directory)).toSorted()).toEqual(["latest", "step-000500"]);
    expect(await readFile(join(directory, "latest"), "utf8")).toBe("step-000500\n");
  });

  test("tells its size as the sum of its files", async () => {
    const { path, sizeBytes } = await writeCheckpoint(folder, contentOf(1));
    const sizes = (await readdir(path)).map(async (name) => (await readFile(join(path, name))).length);
    expect((await Promise.all(sizes)).reduce((a, b) => a + b)).toBe(sizeBytes);
  });

  test("is also a Hugging Face model folder", async () => {
    const { path } = await writeCheckpoint(folder, contentOf(1));
    await using model = await HuggingFaceFolder.open(path);
    expect(model.config).toEqual({ model_type: "gpt2", n_layer: 4 });
    expect(model.names.toSorted()).toEqual(["h.0.bias", "wte.weight"]);
  });

  test("gives back as large a tokenizer as a model folder may have", async () => {
    const content = contentOf(1);
    const merges = Array(1_600_000).fill("a b");
    const companions = { "tokenizer.json": new Uint8Array((64 << 20) + 1) };
    await writeCheckpoint(folder, {
      ...content,
      companions,
      state: { ...content.state, tokenizer: { merges } },
    });
    await using checkpoint = await openCheckpoint(folder);
    expect(checkpoint.state.tokenizer).toMatchObject({ merges: { length: merges.length } });
    expect(checkpoint.companions["tokenizer.json"]?.length).toBe((64 << 20) + 1);
  });

  test("of a step saved again replaces the old one", async () => {
    await writeCheckpoint(folder, contentOf(500));
    const content = contentOf(500);
    await writeCheckpoint(folder, { ...content, state: { ...content.state, seed: 7 } });
    await using checkpoint = await openCheckpoint(folder);
    expect(checkpoint.state.seed).toBe(7);
    expect((await readdir(folder)).toSorted()).toEqual(["latest", "step-000500"]);
  });

  test("has room for steps beyond six digits", () => {
    expect([stepFolder(7), stepFolder(1_234_567)]).toEqual(["step-000007", "step-1234567"]);
  });
});

describe("the newest checkpoint", () => {
  beforeEach(async () => {
    for (const step of [1, 2, 3]) await writeCheckpoint(folder, contentOf(step));
  });

  test("is the last one saved, though an older step", async () => {
    await writeCheckpoint(folder, contentOf(2));
    expect(await stepIn(folder)).toBe(2);
  });

  test("the newest checkpoint is found by its step if the pointer is missing or names none", async () => {
    await writeFile(join(folder, "latest"), "../../etc\n");
    expect(await stepIn(folder)).toBe(3);
    await rm(join(folder, "latest"));
    expect(await stepIn(folder)).toBe(3);
  });

  test("the newest checkpoint is an older one if files are damaged, and the skipped ones are reported", async () => {
    await truncate(join(folder, "step-000003", "optimizer.safetensors"), 100);
    await rm(join(folder, "step-000002", "config.json"));
    await using checkpoint = await openCheckpoint(folder);
    expect(checkpoint.state.step).toBe(1);
    expect(checkpoint.passedOver.map((error) => [error.code, error.fields.path])).toEqual([
      ["CHECKPOINT_DAMAGED", join(folder, "step-000003", "optimizer.safetensors")],
      ["CHECKPOINT_DAMAGED", join(folder, "step-000002", "config.json")],
    ]);
  });

  test("the newest checkpoint may be one that was moved aside for a replacement that never came", async () => {
    const aside = `${replacedPrefix}step-000003-00000000-0000-4000-8000-000000000000`;
    await rename(join(folder, "step-000003"), join(folder, aside));
    expect(await stepIn(folder)).toBe(3);
    expect(await stepIn(join(folder, "step-000003"))).toBe(3);
    await new LocalFolder(folder).sweep();
    expect((await readdir(folder)).toSorted()).toEqual([
      "latest",
      "step-000001",
      "step-000002",
      "step-000003",
    ]);
    expect(await stepIn(folder)).toBe(3);
  });
});

describe("leftovers", () => {
  test("leftovers of unfinished saves are swept, and those of finished replacements too", async () => {
    await writeCheckpoint(folder, contentOf(1));
    const uuid = "00000000-0000-4000-8000-000000000000";
    await mkdir(join(folder, `.saving-step-000002-${uuid}`));
    await writeFile(join(folder, `.saving-step-000002-${uuid}`, "model.safetensors"), "half");
    await writeFile(join(folder, `.saving-latest-${uuid}`), "step");
    await mkdir(join(folder, `${replacedPrefix}step-000001-${uuid}`));
    await new LocalFolder(folder).sweep();
    expect((await readdir(folder)).toSorted()).toEqual(["latest", "step-000001"]);
  });

  test("are none in a folder that is not there", async () => {
    await new LocalFolder(join(folder, "nowhere")).sweep();
  });
});

describe("damage", () => {
  test("of the manifest is seen, wherever a bit flips", async () => {
    const { path } = await writeCheckpoint(folder, contentOf(1));
    const manifest = join(path, "manifest.json");
    const good = await readFile(manifest);
    for (let bit = 0; bit < good.length * 8; bit += 131) {
      const bad = Buffer.from(good);
      bad[bit >> 3] = (bad[bit >> 3] ?? 0) ^ (1 << (bit & 7));
      await writeFile(manifest, bad);
      expect((await refusal(() => openCheckpoint(path))).code).toBe("CHECKPOINT_DAMAGED");
    }
    await writeFile(manifest, good);
    expect(await stepIn(path)).toBe(1);
  });

  test("of any other file, flipped or cut anywhere, is seen and named", async () => {
    const { path } = await writeCheckpoint(folder, contentOf(1));
    for (const name of ["model.safetensors", "optimizer.safetensors", "config.json"]) {
      const good = await readFile(join(path, name));
      for (let index = 0; index < good.length; index += 29) {
        const bad = Buffer.from(good);
        bad[index] = (bad[index] ?? 0) ^ 0x10;
        for (const bytes of [bad, good.subarray(0, index)]) {
          await writeFile(join(path, name), bytes);
          const error = await refusal(() => openCheckpoint(path));
          expect([error.code, error.fields.path]).toEqual(["CHECKPOINT_DAMAGED", join(path, name)]);
        }
      }
      await writeFile(join(path, name), good);
    }
    expect(await stepIn(path)).toBe(1);
  });

  test("of the only checkpoint is its error, of several one that names them", async () => {
    await writeCheckpoint(folder, contentOf(1));
    await rm(join(folder, "step-000001", "model.safetensors"));
    const one = await refusal(() => openCheckpoint(folder));
    expect(one.message).toContain("model.safetensors, got No such file");
    await writeCheckpoint(folder, contentOf(2));
    await rm(join(folder, "step-000002", "manifest.json"));
    const both = await refusal(() => openCheckpoint(folder));
    expect(both).toMatchObject({ code: "CHECKPOINT_DAMAGED", cause: { code: "CHECKPOINT_DAMAGED" } });
    expect(both.message).toContain("got 2 damaged");
  });

  test("a damaged checkpoint is distinguished from a missing one", async () => {
    for (const path of [folder, join(folder, "nowhere")]) {
      expect((await refusal(() => openCheckpoint(path))).code).toBe("CHECKPOINT_MISSING");
    }
  });
});

describe("a save that fails", () => {
  test("a save whose source throws keeps the old checkpoint and leaves nothing behind", async () => {
    await writeCheckpoint(folder, contentOf(1));
    const content = contentOf(2);
    const cause = new Error("the shard is gone");
    const [first, second] = content.weights;
    if (first === undefined || second === undefined) throw new Error("expected two weights");
    const read = () => Promise.reject(cause);
    const error = await refusal(() =>
      writeCheckpoint(folder, { ...content, weights: [first, { ...second, read }] }),
    );
    expect(error).toBeInstanceOf(TroupeError);
    expect(error).toMatchObject({ code: "CHECKPOINT_SAVE_FAILED", fields: { step: 2 }, cause });
    expect((await readdir(folder)).toSorted()).toEqual(["latest", "step-000001"]);
    expect(await stepIn(folder)).toBe(1);
  });

  test("a save that no reader would accept keeps the old checkpoint", async () => {
    await writeCheckpoint(folder, contentOf(1), { keep: { last: 1 } });
    const content = contentOf(2);
    const job = JSON.parse("[".repeat(70) + "]".repeat(70));
    const error = await refusal(() =>
      writeCheckpoint(folder, { ...content, state: { ...content.state, job } }, { keep: { last: 1 } }),
    );
    expect(error).toMatchObject({ code: "CHECKPOINT_SAVE_FAILED", cause: { code: "JSON_INVALID" } });
    expect((await readdir(folder)).toSorted()).toEqual(["latest", "step-000001"]);
    expect(await stepIn(folder)).toBe(1);
  });

  test("while it replaces a step puts the old one back", async () => {
    await writeCheckpoint(folder, contentOf(1));
    const content = contentOf(1);
    const broken = content.optimizer.map((source) => ({ ...source, read: () => new Uint8Array(1) }));
    const error = await refusal(() => writeCheckpoint(folder, { ...content, optimizer: broken }));
    expect(error).toMatchObject({ code: "CHECKPOINT_SAVE_FAILED", cause: { code: "SAFETENSORS_TENSOR" } });
    expect(await stepIn(folder)).toBe(1);
  });

  test("a save whose folder cannot be made is reported", async () => {
    await writeFile(join(folder, "file"), "");
    const error = await refusal(() => writeCheckpoint(join(folder, "file"), contentOf(1)));
    expect(error).toMatchObject({ code: "CHECKPOINT_SAVE_FAILED", fields: { errno: "ENOTDIR" } });
  });
});
