import { copyFileSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { stepFolder } from "../../../src/entries/checkpoint.ts";
import { convert } from "../../../src/library/convert/index.ts";
import { runTiny, Workspace } from "../../fixtures/run-tiny.ts";

const tokens = { bos_token_id: 0, eos_token_id: 3, pad_token_id: 1 };
const generation = { ...tokens, do_sample: true, temperature: 0.7 };

describe("a model that goes on from a folder", () => {
  const workspace = new Workspace();
  const original = workspace.path("original");
  const json = (...path: string[]) => JSON.parse(readFileSync(join(...path), "utf8"));
  const train = async (name: string, steps: number, from: { resume?: string; pretrained?: string }) => {
    const { pretrained = "", ...resume } = from;
    const dir = workspace.path(name);
    const { error } = await runTiny(
      workspace,
      { ranks: 1, steps, checkpoint: { dir }, ...resume },
      { pretrained },
    );
    expect(error).toBeUndefined();
    return join(dir, stepFolder(steps));
  };

  beforeAll(async () => {
    const drawn = await train("drawn", 1, {});
    mkdirSync(original);
    copyFileSync(join(drawn, "model.safetensors"), join(original, "model.safetensors"));
    writeFileSync(
      join(original, "config.json"),
      JSON.stringify({ ...json(drawn, "config.json"), ...tokens }),
    );
    writeFileSync(join(original, "generation_config.json"), JSON.stringify(generation));
  });
  afterAll(() => workspace[Symbol.dispose]());

  it("is saved with the tokens and the ways of generating of that folder, when it is fine-tuned, resumed and converted", async () => {
    const tuned = await train("tuned", 1, { pretrained: original });
    const resumed = await train("resumed", 2, { resume: tuned });
    await convert(resumed, workspace.path("converted"), { to: "hf" });
    for (const folder of [tuned, resumed, workspace.path("converted")]) {
      expect(json(folder, "config.json")).toMatchObject({ n_layer: 2, vocab_size: 256, ...tokens });
      expect(json(folder, "generation_config.json")).toEqual(generation);
    }
    expect(readdirSync(tuned)).toContain("manifest.json");
  });

  it("a saved model's config names no token that its vocabulary lacks", async () => {
    const wrong = { ...json(original, "config.json"), bos_token_id: 50256 };
    writeFileSync(join(original, "config.json"), JSON.stringify(wrong));
    const tuned = await train("again", 1, { pretrained: original });
    expect(json(tuned, "config.json")).toMatchObject({ bos_token_id: null, eos_token_id: 3 });
  });
});
