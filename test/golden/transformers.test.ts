import { execFile } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { dematerialize, materialize } from "../../src/compute/nn/index.ts";
import { saveHuggingFaceFolder } from "../../src/library/checkpoint/index.ts";
import { saveDelta } from "../../src/library/deltas/index.ts";
import { weightBytes } from "../../src/library/models/index.ts";
import { declareGolden, goldenFolders, loadGolden } from "./golden.ts";

// A python that has torch and transformers. Skipped where the environment names none.
const python = process.env.TROUPE_PYTHON;
const folders = goldenFolders().filter(({ lacks }) => lacks === undefined);

// Each three: the reference state, what its delta stands on, and the folder that was written from it: of a delta, by peft.
const script = `
import json, os, sys, torch, transformers
from safetensors.torch import load_file
transformers.logging.set_verbosity_error()
# What peft 0.21 asks an encoder-decoder for, which transformers 5.18 calls otherwise.
transformers.PreTrainedModel._prepare_encoder_decoder_kwargs_for_generation = None
for golden, base, written in zip(sys.argv[1::3], sys.argv[2::3], sys.argv[3::3]):
    is_delta = os.path.exists(written + "/adapter_config.json")
    source = base if is_delta else written
    cls = getattr(transformers, json.load(open(source + "/config.json"))["architectures"][0])
    model, info = cls.from_pretrained(source, output_loading_info=True, attn_implementation="eager")
    complaints = {key: sorted(map(str, found)) for key, found in info.items() if found}
    if is_delta:
        import peft
        config = peft.PeftConfig.from_pretrained(written)
        kind = peft.mapping_func.MODEL_TYPE_TO_PEFT_MODEL_MAPPING.get(config.task_type) if config.is_prompt_learning else None
        model = (kind or peft.PeftModel)(model, config)
        loaded = model.load_adapter(written, "default")
        missing = [name for name in loaded.missing_keys if any(part in name for part in ("lora", "ia3", "modules_to_save"))]
        # Of a prompt, which it reads by itself, peft calls unexpected what it has written too.
        unexpected = [name for name in loaded.unexpected_keys if name != "prompt_embeddings"]
        if missing or unexpected: complaints["adapter"] = [*missing, *unexpected]
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
  let reported: { complaints: object; error: number }[] = [];

  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), "troupe-transformers-"));
    const triples: string[] = [];
    for (const folder of folders) {
      const model = declareGolden(folder);
      materialize(model, { seed: 0 });
      await loadGolden(model, folder);
      const written = join(directory, folder.name);
      if (folder.adapter === undefined)
        await saveHuggingFaceFolder(written, { config: model.configJson, weights: weightBytes(model) });
      else await saveDelta(written, model);
      dematerialize(model);
      triples.push(folder.path, folder.base, written);
    }
    const { stdout } = await promisify(execFile)(python as string, ["-c", script, ...triples]);
    reported = stdout
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line));
  });
  afterAll(() => rm(directory, { recursive: true }));

  test.each(folders.map(({ name }, index) => [name, index] as const))(
    "golden/%s, without a missing or unexpected name, for the same outputs and loss",
    (_, index) => {
      expect(reported[index]?.complaints).toEqual({});
      expect(reported[index]?.error).toBeLessThan(1e-5);
    },
  );
});
