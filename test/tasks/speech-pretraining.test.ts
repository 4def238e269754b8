import { copyFileSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Runtime, type RuntimeOptions } from "../../src/entries/index.ts";
import { sharedPath } from "../fixtures/shared.ts";

const digits = sharedPath("data/fsdd");
const job = fileURLToPath(new URL("../../src/job/rapidformer/jobs/finetune.ts", import.meta.url));

/** A frame each 5 ms of a recording at 8 kHz. */
const wav2vec2 = {
  model_type: "wav2vec2",
  hidden_size: 32,
  num_hidden_layers: 2,
  num_attention_heads: 4,
  intermediate_size: 64,
  conv_dim: [32, 32, 32],
  conv_kernel: [10, 8, 4],
  conv_stride: [5, 4, 2],
  num_conv_pos_embeddings: 16,
  num_conv_pos_embedding_groups: 4,
  layerdrop: 0,
  mask_time_prob: 0.5,
  mask_time_length: 4,
  num_codevectors_per_group: 20,
  codevector_dim: 32,
  proj_codevector_dim: 32,
  num_negatives: 20,
};

/** The figures of a run: each step's losses, and each evaluation's loss and scores. */
interface Measured {
  readonly steps: Readonly<Record<string, number>>[];
  readonly scores: Readonly<Record<string, number>>[];
}

// None where the recordings are not beside the repository.
describe.skipIf(digits === undefined)("wav2vec 2 that learns from spoken digits alone", () => {
  const folder = mkdtempSync(join(tmpdir(), "troupe-test-"));
  const [data, model] = [join(folder, "digits"), join(folder, "model")];
  beforeAll(() => {
    mkdirSync(data);
    mkdirSync(model);
    // The first of each speaker and digit are held out: those of three digits, and some that are not.
    const chosen = readdirSync(digits as string).filter((name) => /^[027]_\w+_(0|1|[5-9])\.wav$/.test(name));
    for (const name of chosen) copyFileSync(join(digits as string, name), join(data, name));
    writeFileSync(join(model, "config.json"), JSON.stringify(wav2vec2));
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  const train = async (
    options: RuntimeOptions,
    config: Readonly<Record<string, unknown>>,
  ): Promise<Measured> => {
    const measured: Measured = { steps: [], scores: [] };
    await using runtime = await Runtime.spawn({ threadsPerRank: 1, warmStandby: false, ...options });
    runtime.on("step.finished", ({ losses }) => void measured.steps.push(losses ?? {}));
    runtime.on(
      "evaluation.finished",
      ({ losses, metrics }) => void measured.scores.push({ ...losses, ...metrics }),
    );
    const given = {
      task: "speech_pretraining",
      dataPath: data,
      pretrainedModelNameOrPath: model,
      fresh: true,
    };
    await runtime.run(job, { ...given, seqLength: 4000, globalBatchSize: 12, lr: 2e-3, ...config });
    return measured;
  };

  it("learns on two ranks what one does that accumulates, bit for bit, and is scored alike", async () => {
    const alone = await train({ ranks: 1, accumulation: 2 }, { trainIters: 4 });
    const two = await train({ ranks: 2, zero: 3, recompute: true }, { trainIters: 4 });
    expect(alone.steps).toHaveLength(4);
    expect(Object.keys(alone.steps[0] ?? {})).toEqual(["contrastive", "diversity"]);
    expect(alone.scores.length).toBeGreaterThan(0);
    expect(two).toEqual(alone);
  });

  it("tells masked frames of other recordings from twenty others better than by chance, with many codes", async () => {
    const { scores } = await train({ ranks: 1 }, { trainIters: 60 });
    const { contrastive = 0, accuracy = 0, codePerplexity = 0 } = scores.at(-1) ?? {};
    // By chance log 21 = 3.04 and 1 / 21; there are 40 codes, and 2 are the fewest.
    expect(contrastive).toBeLessThan(2.8);
    expect(accuracy).toBeGreaterThan(3 / 21);
    expect(codePerplexity).toBeGreaterThan(10);
  });
});
