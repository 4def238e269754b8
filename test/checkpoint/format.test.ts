import { spawnSync } from "node:child_process";
import { mkdir, mkdtemp, readdir, readFile, rename, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { hold, tensor } from "../../src/compute/tensor/index.ts";
import { HuggingFaceFolder } from "../../src/library/checkpoint/hugging-face.ts";
import { openCheckpoint } from "../../src/library/checkpoint/reading/open-checkpoint.ts";
import {
  type CheckpointSource,
  writeCheckpoint,
} from "../../src/library/checkpoint/saving/save-checkpoint.ts";
import { contentOf } from "./content.ts";
import { refusal } from "./refusal.ts";

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "troupe-format-"));
});
afterEach(() => rm(folder, { recursive: true }));

/** Tensors of 4 KiB each; that of the name "h.i.weight" is full of i. */
function weights(count: number): CheckpointSource[] {
  return Array.from({ length: count }, (_, i) => ({
    name: `h.${i}.weight`,
    dtype: "F32",
    shape: [32, 32],
    read: () => new Uint8Array(new Float32Array(1024).fill(i).buffer),
  }));
}

describe("the folder of a checkpoint", () => {
  test("keeps tensors above a size in several files, under Hugging Face's names and index", async () => {
    const content = { ...contentOf(1), weights: weights(5) };
    const { path } = await writeCheckpoint(folder, content, { maxFileBytes: 10_000 });
    expect((await readdir(path)).toSorted()).toEqual([
      "config.json",
      "manifest.json",
      "model-00001-of-00003.safetensors",
      "model-00002-of-00003.safetensors",
      "model-00003-of-00003.safetensors",
      "model.safetensors.index.json",
      "optimizer.safetensors",
    ]);
    const index = JSON.parse(await readFile(join(path, "model.safetensors.index.json"), "utf8"));
    expect(index).toEqual({
      metadata: { total_size: 5 * 4096 },
      weight_map: {
        "h.0.weight": "model-00001-of-00003.safetensors",
        "h.1.weight": "model-00001-of-00003.safetensors",
        "h.2.weight": "model-00002-of-00003.safetensors",
        "h.3.weight": "model-00002-of-00003.safetensors",
        "h.4.weight": "model-00003-of-00003.safetensors",
      },
    });
    await using model = await HuggingFaceFolder.open(path);
    await using checkpoint = await openCheckpoint(path);
    expect(checkpoint.weights).toEqual(weights(5).map(({ name }) => name));
    for (const store of [model, checkpoint]) {
      const four = await store.readRange("h.4.weight", 0, new Uint8Array(4096));
      expect(new Set(new Float32Array(four.buffer))).toEqual(new Set([4]));
    }
  });

  test("lays a tensor that is larger than the size into a file of its own", async () => {
    const content = { ...contentOf(1), weights: weights(3) };
    const { path } = await writeCheckpoint(folder, content, { maxFileBytes: 1 });
    const names = (await readdir(path)).filter((name) => /^model-.*tensors$/.test(name));
    expect(names).toHaveLength(3);
  });

  test("has no file for a group without tensors, and an empty tensor and a number read as such", async () => {
    const sources: CheckpointSource[] = [
      { name: "none", dtype: "F32", shape: [0, 3], read: () => new Uint8Array(0) },
      { name: "one", dtype: "I64", shape: [], read: () => hold(() => tensor(7, { dtype: "int64" })) },
    ];
    const { path } = await writeCheckpoint(folder, { ...contentOf(1), weights: sources, optimizer: [] });
    expect((await readdir(path)).toSorted()).toEqual(["config.json", "manifest.json", "model.safetensors"]);
    await using checkpoint = await openCheckpoint(path);
    expect(checkpoint.optimizer).toEqual([]);
    const one = await checkpoint.read("one", new Uint8Array(8));
    expect(new BigInt64Array(one.buffer)).toEqual(BigInt64Array.of(7n));
    expect(await checkpoint.read("none", new Uint8Array(0))).toHaveLength(0);
  });

  test("of equal contents is equal, byte for byte, whatever the order of the sources", async () => {
    const content = contentOf(1);
    const other = {
      ...content,
      optimizer: content.optimizer.toReversed(),
      weights: content.weights.toReversed(),
    };
    const paths = [
      (await writeCheckpoint(join(folder, "a"), content)).path,
      (await writeCheckpoint(join(folder, "b"), other)).path,
    ];
    for (const name of await readdir(paths[0]!)) {
      const [a, b] = await Promise.all(paths.map((path) => readFile(join(path, name))));
      expect(a?.equals(b as Buffer), name).toBe(true);
    }
  });

  test("with two tensors of one name is refused before anything is written", async () => {
    const content = { ...contentOf(1), weights: [...weights(2), ...weights(1)] };
    expect((await refusal(() => writeCheckpoint(folder, content))).code).toBe("SAFETENSORS_TENSOR");
    expect(await readdir(folder)).toEqual([]);
  });
});

describe("a reader refuses", () => {
  test("a reader refuses a symbolic link, a folder or a pipe in the place of a file", async () => {
    const { path } = await writeCheckpoint(folder, contentOf(1));
    const file = join(path, "model.safetensors");
    const aside = join(folder, "aside");
    await rename(file, aside);
    await symlink(aside, file);
    const link = await refusal(() => openCheckpoint(path));
    expect([link.code, link.fields.path, link.fields.got]).toEqual([
      "CHECKPOINT_DAMAGED",
      file,
      "a symbolic link",
    ]);
    await rm(file);
    await mkdir(file);
    expect((await refusal(() => openCheckpoint(path))).fields.got).toBe("no regular file");
    await rm(file, { recursive: true });
    if (spawnSync("mkfifo", [file]).status !== 0) return;
    expect((await refusal(() => openCheckpoint(path))).fields.got).toBe("no regular file");
  });

  test("a reader refuses two files that changed places", async () => {
    const content = { ...contentOf(1), weights: weights(4) };
    const { path } = await writeCheckpoint(folder, content, { maxFileBytes: 10_000 });
    const [first, second] = [1, 2].map((i) => join(path, `model-0000${i}-of-00002.safetensors`)) as [
      string,
      string,
    ];
    await rename(first, join(folder, "aside"));
    await rename(second, first);
    await rename(join(folder, "aside"), second);
    const error = await refusal(() => openCheckpoint(path));
    expect([error.code, error.fields.path]).toEqual(["CHECKPOINT_DAMAGED", first]);
  });

  test("a reader refuses a manifest beyond its bound before reading it", async () => {
    const { path } = await writeCheckpoint(folder, contentOf(1));
    await writeFile(join(path, "manifest.json"), Buffer.alloc((1 << 26) + 1, " "));
    expect((await refusal(() => openCheckpoint(path))).message).toContain("at most 67108864 bytes");
  });

  test("names, boxes, memory and dtypes that are not there", async () => {
    const { path } = await writeCheckpoint(folder, { ...contentOf(1), weights: weights(1) });
    await using checkpoint = await openCheckpoint(path);
    const name = "h.0.weight";
    const bytes = new Uint8Array(4);
    const wrong = [
      () => checkpoint.read("h.1.weight", bytes),
      () => checkpoint.read("toString", bytes),
      () => checkpoint.read(name, undefined as unknown as Uint8Array),
      () => checkpoint.read(name, new Float32Array(1) as unknown as Uint8Array),
      () => checkpoint.read(name, bytes),
      () => checkpoint.read(name, bytes, { offset: [32, 0], shape: [1, 1] }),
      () => checkpoint.read(name, bytes, { offset: [0], shape: [1] }),
      () => checkpoint.readRange(name, 4094, bytes),
      () => checkpoint.readRange(name, 2, bytes),
      () => checkpoint.readRange(name, -4, bytes),
      () => checkpoint.readRange(name, 0, new Uint8Array(3)),
      () =>
        checkpoint.readRange(
          name,
          0,
          hold(() => tensor([1], { dtype: "int32" })),
        ),
    ];
    for (const body of wrong) expect((await refusal(body)).code).toBe("CHECKPOINT_TENSOR");
  });
});

describe("damage to the bytes of a tensor", () => {
  test("damage is reported when it is read, by file, chunk and tensor; the other tensors are read", async () => {
    const content = { ...contentOf(1), weights: weights(4) };
    const { path } = await writeCheckpoint(folder, content, { chunkBytes: 4096 });
    const file = join(path, "model.safetensors");
    const bytes = await readFile(file);
    bytes[bytes.length - 1]! ^= 1;
    await writeFile(file, bytes);
    await using checkpoint = await openCheckpoint(folder);
    const error = await refusal(() => checkpoint.read("h.3.weight", new Uint8Array(4096)));
    expect(error).toMatchObject({
      code: "CHECKPOINT_DAMAGED",
      fields: {
        path: file,
        what: 'tensor "h.3.weight"',
        offsetBytes: "16384",
        endBytes: String(bytes.length),
      },
    });
    expect(error.message).toContain(`expected CRC-32C`);
    await checkpoint.read("h.2.weight", new Uint8Array(4096));
  });

  test("does not hold a run back: the next older checkpoint is opened when the damaged one is named", async () => {
    await writeCheckpoint(folder, contentOf(1));
    const { path } = await writeCheckpoint(folder, contentOf(2));
    await using checkpoint = await openCheckpoint(folder, { except: [path] });
    expect(checkpoint.state.step).toBe(1);
  });
});

const python = process.env.TROUPE_PYTHON ?? "python3";
const hasPackage = spawnSync(python, ["-c", "import safetensors.numpy"]).status === 0;

describe.skipIf(!hasPackage)("to Python's safetensors package (skipped where there is none)", () => {
  test("the files are safetensors files, named by the index", async () => {
    const content = { ...contentOf(1), weights: weights(5) };
    const { path } = await writeCheckpoint(folder, content, { maxFileBytes: 10_000 });
    const script = `
import json, os, sys
from safetensors import safe_open
from safetensors.numpy import load_file
path = sys.argv[1]
index = json.load(open(os.path.join(path, "model.safetensors.index.json")))
found = {}
for name, file in index["weight_map"].items():
    with safe_open(os.path.join(path, file), framework="numpy") as opened:
        assert opened.metadata() == {"format": "pt"}, opened.metadata()
        found[name] = opened.get_tensor(name)
assert sum(t.nbytes for t in found.values()) == index["metadata"]["total_size"]
optimizer = load_file(os.path.join(path, "optimizer.safetensors"))
print(json.dumps({"shapes": sorted(set(str(t.shape) for t in found.values())), "sums": {n: float(t.sum()) for n, t in sorted(found.items())}, "optimizer": sorted(optimizer)}))
`;
    const { stdout, stderr } = spawnSync(python, ["-c", script, path], { encoding: "utf8" });
    expect(stderr).toBe("");
    expect(JSON.parse(stdout)).toEqual({
      shapes: ["(32, 32)"],
      sums: Object.fromEntries(weights(5).map(({ name }, i) => [name, 1024 * i])),
      optimizer: contentOf(1)
        .optimizer.map(({ name }) => name)
        .toSorted(),
    });
  });
});
