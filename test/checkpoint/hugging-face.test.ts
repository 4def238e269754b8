import { execFileSync } from "node:child_process";
import { mkdtemp, readdir, rename, rm, symlink, truncate, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { writeSafetensors } from "../../src/library/checkpoint/format/safetensors-writer.ts";
import { HuggingFaceFolder, saveHuggingFaceFolder } from "../../src/library/checkpoint/hugging-face.ts";
import { sharedPath } from "../fixtures/shared.ts";
import { contentOf } from "./content.ts";
import { refusal } from "./refusal.ts";

const golden = sharedPath("golden/gpt2");

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "troupe-hub-"));
});
afterEach(() => rm(folder, { recursive: true }));

describe("a Hugging Face folder", () => {
  test("gives back what was saved, and leaves other files alone", async () => {
    const { config, weights } = contentOf(3);
    await writeFile(join(folder, "README.md"), "mine");
    await saveHuggingFaceFolder(folder, { config, weights });
    await saveHuggingFaceFolder(folder, { config, weights });
    expect((await readdir(folder)).toSorted()).toEqual(["README.md", "config.json", "model.safetensors"]);
    await using model = await HuggingFaceFolder.open(folder);
    expect(model.config).toEqual(config);
    expect(model.has("wte.weight") && !model.has("toString")).toBe(true);
    expect(model.entry("wte.weight")).toMatchObject({ dtype: "F32", shape: [6] });
    expect(new Float32Array((await model.read("wte.weight")).buffer)).toEqual(new Float32Array(6).fill(3));
    expect((await model.readRange("wte.weight", 20, new Uint8Array(4))).length).toBe(4);
  });

  test("is refused at once where its config.json is no regular file, or asks for more than its weights hold", async () => {
    const { config, weights } = contentOf(3);
    await saveHuggingFaceFolder(folder, { config, weights });
    const path = join(folder, "config.json");
    const opened = async () => {
      const { message } = await refusal(async () => (await HuggingFaceFolder.open(folder)).close());
      await rm(path);
      return message;
    };
    await writeFile(path, JSON.stringify({ ...config, n_layer: 1e9 }));
    expect(await opened()).toContain("n_layer of no more than its 2 weights");
    await writeFile(path, JSON.stringify({ ...config, text_config: { hidden_size: 1e12 } }));
    expect(await opened()).toContain("hidden_size of no more than the 6 numbers of its largest weight");
    await symlink("/dev/zero", path);
    expect(await opened()).toContain("a device, no regular file");
    execFileSync("mkfifo", [path]);
    expect(await opened()).toContain("a pipe, no regular file");
    await writeFile(path, "");
    await truncate(path, 2 ** 40);
    expect(await opened()).toContain(`${2 ** 40} bytes`);
    await writeFile(path, `{"a":[${"[],".repeat(1_500_000)}0]}`);
    expect(await opened()).toContain("bytes, where such a file has at most");
  });

  test("may keep its weights in several files", async () => {
    const { config, weights } = contentOf(3);
    const [first, second] = weights;
    if (first === undefined || second === undefined) throw new Error("expected two weights");
    const files = ["model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"] as const;
    await writeFile(join(folder, "config.json"), JSON.stringify(config));
    await writeSafetensors(join(folder, files[0]), [first]);
    await writeSafetensors(join(folder, files[1]), [second]);
    const weightMap = { [first.name]: files[0], [second.name]: files[1] };
    const index = { metadata: { total_size: 48 }, weight_map: weightMap };
    await writeFile(join(folder, "model.safetensors.index.json"), JSON.stringify(index));
    {
      await using model = await HuggingFaceFolder.open(folder);
      expect(model.names).toEqual([first.name, second.name]);
      expect((await model.read(second.name)).length).toBe(24);
    }
    await rename(join(folder, files[1]), join(folder, "elsewhere"));
    const error = await refusal(() => HuggingFaceFolder.open(folder));
    expect(error.code).toBe("HUGGING_FACE_FOLDER");
    expect(error.message).toContain(files[1]);
  });

  test("a folder whose index leads out of it, or to a missing tensor, is refused", async () => {
    const { config, weights } = contentOf(3);
    await writeFile(join(folder, "config.json"), JSON.stringify(config));
    await writeSafetensors(join(folder, "part.safetensors"), weights);
    const open = async (weightMap: unknown) => {
      await writeFile(
        join(folder, "model.safetensors.index.json"),
        JSON.stringify({ weight_map: weightMap }),
      );
      return HuggingFaceFolder.open(folder);
    };
    for (const name of ["../part.safetensors", "/etc/passwd", ".hidden", "a/b", 7]) {
      expect((await refusal(() => open({ "wte.weight": name }))).code).toBe("HUGGING_FACE_FOLDER");
    }
    expect((await refusal(() => open(undefined))).code).toBe("HUGGING_FACE_FOLDER");
    expect((await refusal(() => open({ absent: "part.safetensors" }))).code).toBe("SAFETENSORS_TENSOR");
  });

  test("without config.json, or without weights, is refused by the name of what is missing", async () => {
    expect((await refusal(() => HuggingFaceFolder.open(folder))).message).toContain(
      "config.json, got no such file",
    );
    await writeFile(join(folder, "config.json"), "{}");
    const error = await refusal(() => HuggingFaceFolder.open(folder));
    expect(error.message).toContain("model.safetensors.index.json, got no such file");
  });
});

describe.skipIf(golden === undefined)("GPT-2 as transformers saved it", () => {
  test("is read: names, shapes, dtype and all bytes", async () => {
    await using model = await HuggingFaceFolder.open(golden as string);
    expect(model.config).toMatchObject({ model_type: "gpt2", architectures: ["GPT2LMHeadModel"] });
    const embedding = model.entry("transformer.wte.weight");
    expect(embedding).toMatchObject({
      dtype: "F32",
      shape: [model.config.vocab_size, model.config.n_embd],
    });
    for (const name of model.names) {
      const bytes = await model.read(name);
      const { shape } = model.entry(name);
      expect(bytes.length).toBe(shape.reduce((a, b) => a * b, 4));
      expect(new Float32Array(bytes.buffer).every(Number.isFinite)).toBe(true);
    }
  });
});
