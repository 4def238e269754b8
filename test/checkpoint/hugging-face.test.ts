import { mkdtemp, readdir, rename, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { writeSafetensors } from "../../src/checkpoint/format/safetensors-writer.ts";
import { HuggingFaceFolder, saveHuggingFaceFolder } from "../../src/checkpoint/hugging-face.ts";
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

  test("whose index leads out of the folder, or to a tensor that is not there, is refused", async () => {
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
