import { execFile } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { dematerialize, materialize } from "../../src/compute/nn/index.ts";
import { noGrad, scope, type Tensor, tensor } from "../../src/compute/tensor/index.ts";
import { saveHuggingFaceFolder, writeCheckpoint } from "../../src/library/checkpoint/index.ts";
import { GPT2LMHeadModel, GPT2Model, type NamedState, weightBytes } from "../../src/library/models/index.ts";

// A python that has torch and transformers. Skipped where the environment names none.
const python = process.env.TROUPE_PYTHON;

const script = `
import json, sys, torch, transformers
transformers.logging.set_verbosity_error()
ids = torch.tensor(json.loads(sys.argv[1]))
for folder in sys.argv[2:]:
    cls = getattr(transformers, json.load(open(folder + "/config.json"))["architectures"][0])
    model, info = cls.from_pretrained(folder, output_loading_info=True)
    complaints = {key: sorted(map(str, found)) for key, found in info.items() if found}
    print(json.dumps(dict(complaints=complaints, out=model.eval()(ids)[0].flatten().tolist())))
`;

const tiny = { vocab_size: 32, n_positions: 8, n_embd: 12, n_layer: 2, n_head: 3 };
const inputIds = [
  [1, 2, 3, 4],
  [31, 0, 7, 7],
];

const logits = (fields: object) => {
  const model = new GPT2LMHeadModel({ ...tiny, ...fields });
  return { model, forward: (ids: Tensor) => model.forward(ids).logits };
};
const hidden = (fields: object) => {
  const model = new GPT2Model({ ...tiny, ...fields });
  return { model, forward: (ids: Tensor) => model.forward(ids) };
};

describe.skipIf(python === undefined)("transformers reads the folder that is written", () => {
  const cases = {
    "with a tied output layer": logits({}),
    "with an output layer of its own and another activation": logits({
      tie_word_embeddings: false,
      activation_function: "relu",
    }),
    "as a checkpoint that is cut into several files": { ...logits({}), maxFileBytes: 4096 },
    "without an output layer, scores divided by the layer": hidden({
      n_inner: 20,
      scale_attn_by_inverse_layer_idx: true,
    }),
  };
  let directory: string;
  const ours: number[][] = [];
  let theirs: { complaints: object; out: number[] }[];

  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), "troupe-transformers-"));
    const folders: string[] = [];
    for (const one of Object.values(cases)) {
      const { folder, out } = await writeAndCompute(join(directory, String(ours.length)), one);
      folders.push(folder);
      ours.push(out);
    }
    const { stdout } = await promisify(execFile)(python as string, [
      "-c",
      script,
      JSON.stringify(inputIds),
      ...folders,
    ]);
    theirs = stdout
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line));
  });
  afterAll(() => rm(directory, { recursive: true }));

  test.each(Object.keys(cases).map((title, index) => [title, index] as const))(
    "%s, for the same output",
    (_, index) => {
      expect(theirs[index]?.complaints).toEqual({});
      expect(theirs[index]?.out).toHaveLength(ours[index]?.length ?? Number.NaN);
      theirs[index]?.out.forEach(
        (value, at) => void expect(value).toBeCloseTo(ours[index]?.[at] ?? Number.NaN, 5),
      );
    },
  );
});

interface Case {
  readonly model: NamedState;
  readonly forward: (ids: Tensor) => Tensor;
  /** Limit for a checkpoint's files; a plain folder is written if it is left out. */
  readonly maxFileBytes?: number;
}

async function writeAndCompute(folder: string, { model, forward, maxFileBytes }: Case) {
  materialize(model.eval(), { seed: 6 });
  const out = scope(() =>
    noGrad(() => Array.from(forward(tensor(inputIds, { dtype: "int64" })).toTypedArray(), Number)),
  );
  const content = { config: model.configJson, weights: weightBytes(model) };
  const state = { step: 1, seed: 6, samplesConsumed: 0, job: null, tokenizer: null };
  let path = folder;
  if (maxFileBytes === undefined) await saveHuggingFaceFolder(folder, content);
  else ({ path } = await writeCheckpoint(folder, { ...content, state, optimizer: [] }, { maxFileBytes }));
  dematerialize(model);
  return { folder: path, out };
}
