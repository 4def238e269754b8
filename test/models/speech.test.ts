import { execFile } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, test } from "vitest";
import {
  bindRandomness,
  dematerialize,
  LayerDrop,
  materialize,
  Randomness,
} from "../../src/compute/nn/index.ts";
import { noGrad, ones, scope, tensor, zeros } from "../../src/compute/tensor/index.ts";
import { Runtime, type RuntimeOptions } from "../../src/entries/index.ts";
import { saveHuggingFaceFolder } from "../../src/library/checkpoint/index.ts";
import {
  autoModel,
  Data2VecAudioForCTC,
  taskOf,
  Wav2Vec2ForCTC,
  Wav2Vec2ForSequenceClassification,
  weightBytes,
} from "../../src/library/models/index.ts";
import { wav2vec2Config } from "../../src/library/models/wav2vec2/config.ts";
import { SpecAugment } from "../../src/library/models/wav2vec2/spec-augment.ts";
import { numbers } from "../tensor/numbers.ts";

const [BATCH, FRAMES, WIDTH] = [3, 40, 12];
const lengths = [40, 25, 11];

/** Rows of frames: 1 where nothing is masked, 2 where the vector stands, 0 where a feature is masked. */
function masked(fields: Record<string, unknown>, microBatch: number, given = lengths): number[][][] {
  const augment = new SpecAugment(
    wav2vec2Config({
      hidden_size: WIDTH,
      num_attention_heads: 1,
      num_conv_pos_embedding_groups: 1,
      ...fields,
    }),
  );
  const randomness = new Randomness(5);
  bindRandomness(augment, randomness);
  randomness.microBatch = microBatch;
  return scope(() => {
    const frames = ones([BATCH, FRAMES, WIDTH]);
    const made = augment.forward(frames, tensor(given, { dtype: "int64" }), ones([WIDTH]).mul(2));
    const flat = numbers(made);
    return Array.from({ length: BATCH }, (_, row) =>
      Array.from({ length: FRAMES }, (__, frame) =>
        flat.slice((row * FRAMES + frame) * WIDTH, (row * FRAMES + frame + 1) * WIDTH),
      ),
    );
  });
}

/** How many frames transformers masks: spans of one length at different starts, their number rounded at random. */
function expectedShare(length: number, share: number, span: number, atLeast: number): number {
  let [sum, state] = [0, 12345];
  const random = () => {
    state = (state * 1103515245 + 12345) % 2 ** 31;
    return state / 2 ** 31;
  };
  const rounds = 20_000;
  for (let round = 0; round < rounds; round++) {
    const wished = Math.max(Math.floor((share * length) / span + random()), atLeast);
    const starts = Math.max(0, length - span + 1);
    const count = Math.min(wished, Math.floor(FRAMES / span), starts);
    const places = Array.from({ length: starts }, (_, place) => place);
    const seen = new Set<number>();
    for (let drawn = 0; drawn < count; drawn++) {
      const [place = 0] = places.splice(Math.floor(random() * places.length), 1);
      for (let frame = 0; frame < span; frame++) seen.add(place + frame);
    }
    sum += seen.size;
  }
  return sum / rounds;
}

describe("masked spectra", () => {
  const fields = { mask_time_prob: 0.4, mask_time_length: 4, mask_time_min_masks: 1 };

  test("put the model's vector in the place of as many frames as transformers does, none of them padding", () => {
    const rounds = 400;
    const counts = [0, 0, 0];
    for (let round = 0; round < rounds; round++) {
      for (const [row, frames] of masked(fields, round).entries()) {
        for (const [frame, [first = 0, ...rest]] of frames.entries()) {
          expect(rest.every((value) => value === first)).toBe(true);
          if (first === 2) counts[row] = (counts[row] ?? 0) + 1;
          if (frame >= (lengths[row] ?? 0)) expect(first).toBe(1);
        }
      }
    }
    for (const [row, length] of lengths.entries()) {
      const expected = expectedShare(length, 0.4, 4, 1);
      // A mean of 400 draws of a deviation below 3 frames: 0.5 is more than three of its own.
      expect(Math.abs((counts[row] ?? 0) / rounds - expected)).toBeLessThan(0.5);
    }
  });

  test("make features 0 in all frames of a row alike", () => {
    const rows = masked({ mask_time_prob: 0, mask_feature_prob: 0.3, mask_feature_length: 2 }, 1);
    const zerosOf = (frame: number[]) => frame.map((value) => value === 0).join();
    expect(rows.some(([frame = []]) => frame.includes(0))).toBe(true);
    for (const frames of rows) expect(new Set(frames.map(zerosOf)).size).toBe(1);
    expect(new Set(rows.map(([frame = []]) => zerosOf(frame))).size).toBeGreaterThan(1);
  });

  test("are the same for the same seed, step and micro-batch, and else not", () => {
    expect(masked(fields, 7)).toEqual(masked(fields, 7));
    expect(masked(fields, 7)).not.toEqual(masked(fields, 8));
  });

  test("are refused for fewer frames than a span has", () => {
    expect(() => masked({ mask_time_length: 41 }, 0)).toThrow(
      expect.objectContaining({
        code: "MODEL_INPUT",
        message: expect.stringContaining("mask_time_length = 41"),
      }),
    );
  });

  test("have no vector where nothing is masked, as in transformers, and none that is saved", () => {
    const fieldsOf = { mask_time_prob: 0, mask_feature_prob: 0 };
    expect(new Wav2Vec2ForCTC(fieldsOf).namedParameters().has("wav2vec2.masked_spec_embed")).toBe(false);
    expect(new Wav2Vec2ForCTC().namedParameters().has("wav2vec2.masked_spec_embed")).toBe(true);
  });
});

describe("layers left out", () => {
  test("left-out layers return their input about as often as their rate says, and never in evaluation", () => {
    const drop = new LayerDrop(0.3);
    const randomness = new Randomness(3);
    bindRandomness(drop, randomness);
    const given = (microBatch: number) => {
      randomness.microBatch = microBatch;
      return scope(() => drop.forward(ones([]), zeros([])).item());
    };
    const made = Array.from({ length: 1000 }, (_, round) => given(round));
    const share = made.filter((value) => value === 0).length / made.length;
    expect(Math.abs(share - 0.3)).toBeLessThan(0.05); // three deviations of 1000 draws
    drop.eval();
    expect(Array.from({ length: 20 }, (_, round) => given(round))).toEqual(Array(20).fill(1));
  });

  test("are refused beside an adapter, whose layers make fewer frames than they are given", () => {
    expect(() => new Wav2Vec2ForCTC({ add_adapter: true, layerdrop: 0.1 })).toThrow(
      expect.objectContaining({ code: "MODEL_CONFIG", message: expect.stringContaining("layerdrop") }),
    );
  });
});

test("data2vec's model of speech is its base model where nothing is said", () => {
  const model = new Data2VecAudioForCTC();
  expect(model.configJson).toMatchObject({ model_type: "data2vec-audio", conv_pos_kernel_size: 19 });
  expect(model.configJson).not.toHaveProperty("feat_extract_norm");
  expect(model.numParameters).toBe(93_188_896);
});

test("a run that masks and leaves out draws the same on one rank that accumulates and on two, at ZeRO 3, recomputed, split by heads", async () => {
  const losses = async (options: RuntimeOptions) => {
    const reported: number[] = [];
    await using runtime = await Runtime.spawn({ threadsPerRank: 1, warmStandby: false, ...options });
    runtime.on("step.finished", ({ lossNats }) => void reported.push(lossNats));
    await runtime.run(new URL("../fixtures/jobs/speech.ts", import.meta.url));
    return reported;
  };
  const alone = await losses({ ranks: 1, accumulation: 2 });
  expect(alone).toHaveLength(4);
  expect(await losses({ ranks: 2, zero: 3, recompute: true })).toEqual(alone);
  const split = await losses({ ranks: 2, tp: 2, accumulation: 2, sequenceParallel: true });
  for (const [step, loss] of alone.entries())
    expect(Math.abs((split[step] ?? 0) - loss)).toBeLessThan(1e-4 * loss); // sums by halves
});

describe("a class of a complete recording", () => {
  const [numRows, numSamples] = [3, 400];
  const heard = [400, 301, 123];
  const small = (type: string) => ({
    model_type: type,
    hidden_size: 32,
    num_hidden_layers: 2,
    num_attention_heads: 4,
    intermediate_size: 48,
    conv_dim: [16, 16],
    conv_kernel: [10, 3],
    conv_stride: [5, 2],
    num_feat_extract_layers: 2,
    feat_extract_norm: "layer",
    num_conv_pos_embeddings: 2,
    num_conv_pos_embedding_groups: 4,
    classifier_proj_size: 12,
    id2label: { 0: "bell", 1: "rain", 2: "wind" },
  });
  const isHeard = (index: number) => index % numSamples < (heard[Math.floor(index / numSamples)] ?? 0);
  const samples = Array.from({ length: numRows * numSamples }, (_, index) =>
    isHeard(index) ? Math.fround(Math.sin(0.01 * index * index)) : 0,
  );
  const mask = samples.map((_, index) => Number(isHeard(index)));

  /** The logits of recordings side by side, or of one of them alone and without its padding. */
  const answers = (model: Wav2Vec2ForSequenceClassification, alone?: number): number[] =>
    noGrad(() =>
      scope(() => {
        const all = tensor(Float32Array.from(samples), { shape: [numRows, numSamples] });
        const attentionMask = tensor(mask, { dtype: "int64" }).view([numRows, numSamples]);
        const inputValues =
          alone === undefined ? all : all.narrow(0, alone, 1).narrow(1, 0, heard[alone] ?? 0);
        const given = alone === undefined ? { inputValues, attentionMask } : { inputValues };
        return numbers(model.forward(given).logits ?? zeros([]));
      }),
    );

  test("is that of the recording alone, however it is padded", () => {
    const model = new Wav2Vec2ForSequenceClassification(small("wav2vec2"));
    materialize(model.eval(), { seed: 4 });
    const together = answers(model);
    for (const row of heard.keys())
      for (const [index, logit] of answers(model, row).entries())
        expect(Math.abs(logit - (together[3 * row + index] ?? Number.NaN))).toBeLessThan(1e-5); // sums of other lengths
    dematerialize(model);
  });

  test("is refused beside an adapter, beside which transformers has none", () => {
    const fields = { ...small("wav2vec2"), layerdrop: 0, add_adapter: true };
    expect(() => new Wav2Vec2ForSequenceClassification(fields)).toThrow(
      expect.objectContaining({ code: "MODEL_CONFIG", message: expect.stringContaining("add_adapter") }),
    );
  });

  // A python that has torch and transformers. Skipped where the environment names none.
  const python = process.env.TROUPE_PYTHON;
  test.skipIf(python === undefined).each(["wav2vec2", "data2vec-audio"])(
    "is what transformers says, of the folder of %s, and without padding too",
    async (type) => {
      const folder = await mkdtemp(join(tmpdir(), "troupe-speech-"));
      const model = autoModel("audio_classification", small(type)) as Wav2Vec2ForSequenceClassification;
      expect(taskOf(model.configJson)).toBe("audio_classification");
      materialize(model.eval(), { seed: 4 });
      const ours = [
        answers(model),
        heard
          .keys()
          .map((row) => answers(model, row))
          .toArray()
          .flat(),
      ];
      await saveHuggingFaceFolder(folder, { config: model.configJson, weights: weightBytes(model) });
      dematerialize(model);
      const script = `
import json, sys, torch, transformers
folder, samples, mask, heard = sys.argv[1], *map(json.loads, sys.argv[2:])
name = json.load(open(folder + "/config.json"))["architectures"][0]
model, info = getattr(transformers, name).from_pretrained(folder, output_loading_info=True)
model.eval()
x, m = torch.tensor(samples).view(len(heard), -1), torch.tensor(mask).view(len(heard), -1)
alone = [model(x[row : row + 1, :count]).logits.flatten().tolist() for row, count in enumerate(heard)]
print(json.dumps(dict(complaints={key: sorted(map(str, found)) for key, found in info.items() if found},
                      logits=[model(x, attention_mask=m).logits.flatten().tolist(), sum(alone, [])])))
`;
      const given = [samples, mask, heard].map((value) => JSON.stringify(value));
      const { stdout } = await promisify(execFile)(python as string, ["-c", script, folder, ...given]);
      const { complaints, logits } = JSON.parse(stdout.trim().split("\n").at(-1) ?? "");
      await rm(folder, { recursive: true });
      expect(complaints).toEqual({});
      for (const [index, each] of ours.flat().entries())
        expect(Math.abs(each - logits.flat()[index])).toBeLessThan(1e-5);
    },
  );
});
