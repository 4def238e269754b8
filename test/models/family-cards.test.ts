import { readdirSync, readFileSync } from "node:fs";
import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { dematerialize, materialize } from "../../src/compute/nn/index.ts";
import { defaultArguments } from "../../src/job/rapidformer/arguments.ts";
import { withArchitecture } from "../../src/job/rapidformer/model-fields.ts";
import { saveHuggingFaceFolder } from "../../src/library/checkpoint/index.ts";
import { convert, openSource } from "../../src/library/convert/index.ts";
import { applyDelta, ia3, lora } from "../../src/library/deltas/index.ts";
import { autoModel, families, hasModel, weightBytes } from "../../src/library/models/index.ts";
import { toy } from "../fixtures/toy-family/family.ts";
import { temporaryFolder } from "../service/temporary-folder.ts";

const source = fileURLToPath(new URL("../../src", import.meta.url));
const models = join(source, "library/models");

/** Where families may be named. */
const mayName = [
  "entries/index.ts", // list what jobs import by name
  "entries/models.ts",
  "library/models/families.ts", // lists the cards
  "library/models/index.ts", // lists what jobs import by name
  "library/data/megatron/", // Megatron's own names of its samples
  "library/data/tokenizers/engine.ts", // published patterns by the models they came with
  "library/export/gguf/tokenizer.ts", // llama.cpp's names of tokenizers
];

function filesBelow(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((file) => file.endsWith(".ts"))
    .map((file) => join(folder, file));
}

const folders = readdirSync(models, { withFileTypes: true })
  .filter((entry) => entry.isDirectory() && readdirSync(join(models, entry.name)).includes("family.ts"))
  .map(({ name }) => name);

/** Code without comments. */
function codeOf(path: string): string {
  return readFileSync(path, "utf8").replaceAll(/\/\*[\s\S]*?\*\/|(?<![:"'`\w])\/\/.*$/gm, "");
}

function exportsOf(code: string): string[] {
  return [...code.matchAll(/^export (?:abstract )?(?:class|function|const|interface|type) (\w+)/gm)].map(
    ([, name = ""]) => name,
  );
}

describe("a family", () => {
  it("is named in its folder alone", () => {
    const types = families()
      .map(({ modelType }) => modelType)
      .filter((type) => type !== "clip"); // gradients are cut by `clip` too
    // Classes and functions that are called after the family, as GPTJForCausalLM is and gptJConfig.
    const stems = [...folders, ...types].map((name) => name.replaceAll(/[^a-z0-9]/g, ""));
    const own = folders.flatMap((folder) => filesBelow(join(models, folder)));
    const names = own
      .flatMap((path) => exportsOf(codeOf(path)))
      .filter((name) => stems.some((stem) => name.toLowerCase().startsWith(stem)));
    const patterns = [
      `["'\`](?:${types.join("|")})["'\`]`,
      `\\b(?:${types.join("|")}): `,
      `\\./(?:${folders.join("|")})/`,
      `\\b(?:${names.join("|")})\\b`,
    ];
    const pattern = new RegExp(patterns.join("|"), "g");
    const found = filesBelow(source)
      .map((path) => ({ path, file: relative(source, path) }))
      .filter(({ path, file }) => !own.includes(path) && !mayName.some((start) => file.startsWith(start)))
      .flatMap(({ path, file }) =>
        [...codeOf(path).matchAll(pattern)].map(([word]) => `${file} names ${word}`),
      );
    expect(names.length).toBeGreaterThan(60);
    expect(found).toEqual([]);
  });

  it("makes models of the type on its card", () => {
    const made = families().flatMap(({ modelType, heads }) =>
      Object.values(heads).map((Model) => [
        modelType,
        new Model({ model_type: modelType }).configJson.model_type,
      ]),
    );
    expect(made.map(([, type]) => type)).toEqual(made.map(([type]) => type));
  });
});

describe("a family of one's own", () => {
  const fields = { model_type: toy.modelType };

  it("is known to autoModel by its card alone", () => {
    expect(hasModel("causal_lm", fields)).toBe(true);
    expect(autoModel("causal_lm", fields).configJson).toMatchObject({ model_type: "toy", toy_width: 8 });
  });

  it("is known to deltas by its card alone", () => {
    const tuned = applyDelta(autoModel("causal_lm", fields), lora());
    const trained = [...tuned.namedParameters()]
      .filter(([, { trainable }]) => trainable)
      .map(([name]) => name);
    expect(trained).toEqual(["toy.up.lora_A.weight", "toy.up.lora_B.weight"]);
    const rescaled = applyDelta(autoModel("causal_lm", fields), ia3());
    expect(rescaled.namedParameters().get("toy.down.ia3_l")?.shape).toEqual([1, 12]);
  });

  it("has its sizes from Rapidformer's flags by its card alone", () => {
    expect(withArchitecture(fields, { ...defaultArguments, hiddenSize: 4 })).toEqual({
      ...fields,
      toy_width: 4,
      toy_inner: 16,
    });
  });

  it("is converted by its card alone", async () => {
    const folder = await temporaryFolder();
    const model = autoModel("causal_lm", fields);
    materialize(model, { seed: 1 });
    await saveHuggingFaceFolder(folder, { config: model.configJson, weights: weightBytes(model) });
    dematerialize(model);
    const file = join(folder, "fairseq.safetensors");
    await convert(folder, file, { to: "fairseq" });
    const source = await openSource(file);
    expect([...source.tensors.keys()].toSorted()).toEqual([
      "decoder.embed_tokens.weight",
      "decoder.fc1.bias",
      "decoder.fc1.weight",
      "decoder.fc2.bias",
      "decoder.fc2.weight",
      "decoder.output_projection.weight",
    ]);
    await source.close();
  });
});
