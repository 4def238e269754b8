import { execFile } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { saveHuggingFaceFolder } from "../../src/checkpoint/index.ts";
import { autoModel, loadWeights, type Task, weightBytes } from "../../src/models/index.ts";
import { dematerialize, materialize } from "../../src/nn/index.ts";
import { goldenFolders, openGolden } from "./golden.ts";

// A python that has torch and transformers. Skipped where the environment names none.
const python = process.env.TROUPE_PYTHON;
const folders = goldenFolders().filter(({ lacks }) => lacks === undefined);

// Each pair: the reference state, and the folder that was written from it.
const script = `
import json, sys, torch, transformers
from safetensors.torch import load_file
transformers.logging.set_verbosity_error()
for golden, written in zip(sys.argv[1::2], sys.argv[2::2]):
    cls = getattr(transformers, json.load(open(written + "/config.json"))["architectures"][0])
    model, info = cls.from_pretrained(written, output_loading_info=True, attn_implementation="eager")
    complaints = {key: sorted(map(str, found)) for key, found in info.items() if found}
    state = load_file(golden + "/golden.safetensors")
    inputs = {name[6:]: value for name, value in state.items() if name.startswith("input.")}
    if cls.__name__ == "CLIPModel": inputs["return_loss"] = True
    with torch.no_grad(): outputs = model.eval()(**inputs)
    errors = [float((outputs[name[7:]].reshape(value.shape) - value).abs().max() / value.abs().max())
              for name, value in state.items() if name.startswith("output.")]
    print(json.dumps(dict(complaints=complaints, error=max(errors))), flush=True)
`;

describe.skipIf(python === undefined || folders.length === 0)("transformers reads what is written of", () => {
  let directory: string;
  let told: { complaints: object; error: number }[] = [];

  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), "troupe-transformers-"));
    const pairs: string[] = [];
    for (const { name, path, task, config } of folders) {
      const model = autoModel(task as Task, config);
      const golden = await openGolden(path);
      materialize(model, { seed: 0 });
      await loadWeights(model, golden.folder);
      const written = join(directory, name);
      await saveHuggingFaceFolder(written, { config: model.configJson, weights: weightBytes(model) });
      dematerialize(model);
      for (const state of golden.state.values()) state.dispose();
      await golden.folder.close();
      pairs.push(path, written);
    }
    const { stdout } = await promisify(execFile)(python as string, ["-c", script, ...pairs]);
    told = stdout
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line));
  });
  afterAll(() => rm(directory, { recursive: true }));

  test.each(folders.map(({ name }, index) => [name, index] as const))(
    "golden/%s, without a missing or unexpected name, for the same outputs and loss",
    (_, index) => {
      expect(told[index]?.complaints).toEqual({});
      expect(told[index]?.error).toBeLessThan(1e-5);
    },
  );
});
