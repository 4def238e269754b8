import { copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { prepare } from "../../examples/rapidformer/prepare.ts";
import { type Batch, Runtime, type RuntimeOptions, sampleDataset } from "../../src/entries/index.ts";

const facts = { source: "lengths" };
/** Any lengths will do. */
const lengthOf = (index: number) => (index * 7919) % 53;
const job = fileURLToPath(new URL("../../src/job/rapidformer/jobs/finetune.ts", import.meta.url));

/** Questions on texts of unequal length, by the words that the small BERT knows. */
function questions(dir: string): string {
  const facts = [
    "the baker sold a red boat",
    "a sailor found the silver bell at night",
    "the doctor lost two",
  ];
  const line = (index: number) => {
    const context = `${"at night ".repeat(index % 5)}${facts[index % 3]} in the morning .`;
    const text = context.split(" ").slice(-4, -1).join(" ");
    return JSON.stringify({
      question: "the old king painted".slice(0, 8 + (index % 3) * 4).trim(),
      context,
      answers: { text: [text], answer_start: [context.indexOf(text)] },
    });
  };
  mkdirSync(dir, { recursive: true });
  for (const split of ["train", "validation"])
    writeFileSync(
      join(dir, `${split}.jsonl`),
      Array.from({ length: 48 }, (_, index) => line(index)).join("\n"),
    );
  return dir;
}

/** Texts of 2 to 29 words. */
function shortTexts(dir: string): string {
  mkdirSync(dir, { recursive: true });
  const words =
    "the baker sold a red boat at night in the morning a sailor found two horses after the storm .";
  const text = (index: number) =>
    `${words} ${words}`.split(" ").slice(index % 5, (index % 5) + 2 + ((7 * index) % 28));
  for (const [split, numTexts] of [
    ["train", 48],
    ["validation", 5],
  ] as const)
    writeFileSync(
      join(dir, `${split}.jsonl`),
      Array.from({ length: numTexts }, (_, index) => JSON.stringify({ text: text(index).join(" ") })).join(
        "\n",
      ),
    );
  return dir;
}

/** A folder with the config.json of a small GPT-2 that reads these words. */
function smallGpt(dir: string, vocabulary: string): string {
  mkdirSync(dir, { recursive: true });
  copyFileSync(vocabulary, join(dir, "vocab.txt"));
  const sizes = { vocab_size: 128, n_embd: 32, n_layer: 2, n_head: 4, n_positions: 32 };
  const dropout = { embd_pdrop: 0, attn_pdrop: 0, resid_pdrop: 0 };
  writeFileSync(join(dir, "config.json"), JSON.stringify({ model_type: "gpt2", ...sizes, ...dropout }));
  return dir;
}

const indicesOf = (size: number, window?: number, isStep = false) => {
  const dataset = sampleDataset({
    facts,
    splits: { train: Array.from({ length: size }, (_, index) => index) },
    collate: (items: readonly number[]) => ({ items }) as Batch,
    seed: 3,
    ...(window !== undefined && { buckets: { window, isStep, lengthOf } }),
  });
  return (position: number, numSamples: number) =>
    (dataset.batch("train", position, numSamples) as { items: number[] }).items;
};

describe("dynamic shapes", () => {
  const folder = mkdtempSync(join(tmpdir(), "troupe-test-"));
  const config = {
    ...{ task: "sequence_classification", dataPath: join(folder, "glue/mrpc") },
    ...{
      pretrainedModelNameOrPath: join(folder, "bert"),
      fresh: true,
      trainIters: 6,
      globalBatchSize: 32,
      lr: 1e-3,
    },
    ...{ hiddenDropout: 0, attentionDropout: 0 },
  };
  beforeAll(() => prepare(folder));
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  it("keep the samples of every window, shortest first, however the window is dealt, in whatever order it is asked for", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 60 }),
        fc.integer({ min: 1, max: 24 }),
        fc.integer({ min: 1, max: 9 }),
        (size, window, share) => {
          const [plain, bucketed, again] = [
            indicesOf(size),
            indicesOf(size, window),
            indicesOf(size, window),
          ];
          for (const number of [3, 0, 5, 1]) {
            const first = number * window;
            const whole = bucketed(first, window);
            expect(whole.toSorted()).toEqual(plain(first, window).toSorted());
            expect(whole.map(lengthOf)).toEqual(whole.map(lengthOf).toSorted((a, b) => a - b));
            // By ranks and micro-batches, and by a run that goes on in the middle.
            const parts = [];
            for (let at = 0; at < window; at += share)
              parts.push(again(first + at, Math.min(share, window - at)));
            expect(parts.flat()).toEqual(whole);
          }
        },
      ),
      { seed: 6, numRuns: 60 },
    );
  });

  it("deal a step's batches so that replicas have as much to do, each batch of samples that are neighbours by length", () => {
    const batchesOf = (numBatches: number, share: number) => {
      const window = numBatches * share;
      const [sorted, dealt] = [indicesOf(200, window), indicesOf(200, window, true)];
      const inOrder = sorted(window, window);
      return Array.from({ length: numBatches }, (_, batch) => {
        const items = dealt(window + batch * share, share);
        const place = inOrder.indexOf(items[0] as number);
        expect(items).toEqual(inOrder.slice(place, place + share));
        return place / share;
      });
    };
    expect(batchesOf(4, 16)).toEqual([0, 3, 1, 2]);
    expect(batchesOf(8, 4)).toEqual([0, 7, 3, 4, 1, 6, 2, 5]);
    for (const numBatches of [1, 2, 3, 5, 6, 12, 16]) {
      const order = batchesOf(numBatches, 3);
      expect(order.toSorted((a, b) => a - b)).toEqual(order.map((_, batch) => batch));
      // Replicas with an even number of batches each have the same sum of places.
      for (const replicas of [2, 4].filter((number) => (numBatches / number) % 2 === 0)) {
        const each = numBatches / replicas;
        const sums = Array.from({ length: replicas }, (_, replica) =>
          order.slice(replica * each, (replica + 1) * each).reduce((sum, place) => sum + place, 0),
        );
        expect(new Set(sums).size).toBe(1);
      }
    }
    // Batches that do not fill a window come shortest first.
    const [sorted, dealt] = [indicesOf(200, 10), indicesOf(200, 10, true)];
    expect(dealt(20, 4)).toEqual(sorted(20, 4));
  });

  it("refuse a window without samples", () => {
    expect(() => indicesOf(4, 0)).toThrow("expected a window of at least 1 sample, got 0");
  });

  it("train to the losses of fixed padding on 1 and 2 ranks, on fewer positions, and go on where they were", async () => {
    const train = async (options: RuntimeOptions, dynamicShapes: boolean) => {
      await using runtime = await Runtime.spawn({ threadsPerRank: 1, warmStandby: false, ...options });
      const losses: number[] = [];
      runtime.on("step.finished", ({ step, lossNats }) => {
        losses[step - 1] = lossNats;
      });
      await runtime.run(job, { ...config, ...(dynamicShapes && { dynamicShapes, padToMultipleOf: 1 }) });
      return losses;
    };
    const dir = join(folder, "runs");
    const fixed = await train({ ranks: 1, accumulation: 4 }, false);
    const one = await train({ ranks: 1, accumulation: 4 }, true);
    const two = await train({ ranks: 2, accumulation: 2, zero: 3, checkpoint: { dir, everySteps: 3 } }, true);
    expect(fixed).toHaveLength(6);
    // The same numbers, zeros of padding apart, are added up in another order, and nothing else differs.
    for (const losses of [one, two])
      expect(Math.max(...fixed.map((loss, step) => Math.abs(loss - (losses[step] ?? 0))))).toBeLessThan(2e-6);
    expect(await train({ ranks: 2, accumulation: 2, zero: 0 }, true)).toEqual(two);
    const rest = await train({ ranks: 2, accumulation: 2, zero: 3, resume: join(dir, "step-000003") }, true);
    expect(rest.slice(3)).toEqual(two.slice(3));
  });

  it("pack samples into one row a batch, to the losses of a row each, on any ranks, split heads among them, and after a resume", async () => {
    const tokens: number[] = [];
    const train = async (options: RuntimeOptions, settings: Readonly<Record<string, unknown>>, by = job) => {
      await using runtime = await Runtime.spawn({ threadsPerRank: 1, warmStandby: false, ...options });
      const losses: number[] = [];
      runtime.on("step.finished", ({ step, lossNats, numTokens }) => {
        losses[step - 1] = lossNats;
        if (numTokens !== undefined) tokens[step - 1] = numTokens;
      });
      const isFixed = settings.packing === undefined && settings.dynamicShapes === undefined;
      await runtime.run(by, { ...config, ...(isFixed ? {} : { padToMultipleOf: 1 }), ...settings });
      return { losses, tokens: [...tokens] };
    };
    const packed = { packing: true };
    const dir = join(folder, "packed-runs");
    const rows = await train({ ranks: 1, accumulation: 4 }, {});
    const two = { ranks: 2, accumulation: 2 } as const;
    const runs = [
      await train({ ranks: 1, accumulation: 4 }, packed),
      await train({ ...two, zero: 3, checkpoint: { dir, everySteps: 3 } }, packed),
      await train({ ranks: 2, accumulation: 2, tp: 2, sequenceParallel: true }, packed),
    ];
    expect(rows.losses).toHaveLength(6);
    for (const { losses, tokens } of runs) {
      expect(Math.max(...rows.losses.map((loss, step) => Math.abs(loss - (losses[step] ?? 0))))).toBeLessThan(
        1e-6,
      );
      expect(tokens).toEqual(rows.tokens); // real ones: no sample is lost, and none comes twice
    }
    const rest = await train({ ...two, zero: 3, resume: join(dir, "step-000003") }, packed);
    expect(rest.losses.slice(3)).toEqual(runs[1]?.losses.slice(3));

    // Windows of texts for a causal model, whose labels are its inputs: nothing is asked over the end of a text.
    const causal = {
      ...{ task: "causal_lm", trainIters: 3, seqLength: 32 },
      ...{ dataPath: "", dataDir: shortTexts(join(folder, "texts")) },
      pretrainedModelNameOrPath: smallGpt(join(folder, "gpt"), join(folder, "bert/vocab.txt")),
    };
    const windows = await train({ ranks: 1, accumulation: 4 }, causal);
    for (const [options, settings] of [
      [{ ranks: 2, accumulation: 2, zero: 3 }, packed],
      [
        { ranks: 2, accumulation: 2, tp: 2 },
        { ...packed, padToMultipleOf: 8 },
      ],
      [{ ranks: 2, accumulation: 2, zero: 1 }, { dynamicShapes: true }],
    ] as const) {
      const other = await train(options, { ...causal, ...settings });
      expect(
        Math.max(...windows.losses.map((loss, step) => Math.abs(loss - (other.losses[step] ?? 0)))),
      ).toBeLessThan(2e-6);
      expect(other.tokens.slice(0, 3)).toEqual(windows.tokens.slice(0, 3));
    }

    // By a template too, whose collate function packs; a template whose function does not gets an error.
    const template = fileURLToPath(new URL("../fixtures/jobs/packed-template.ts", import.meta.url));
    const ofTemplate = {
      task: "",
      dataPath: "",
      pretrainedModelNameOrPath: "",
      fresh: false,
      trainIters: 4,
      globalBatchSize: 8,
    };
    const [padded, dealt, side] = [
      await train({ ranks: 1 }, ofTemplate, template),
      await train({ ranks: 1 }, { ...ofTemplate, dynamicShapes: true }, template),
      await train({ ranks: 1 }, { ...ofTemplate, ...packed }, template),
    ];
    for (const { losses } of [dealt, side])
      expect(
        Math.max(...padded.losses.map((loss, step) => Math.abs(loss - (losses[step] ?? 0)))),
      ).toBeLessThan(2e-6);
    await expect(
      train({ ranks: 1 }, { ...ofTemplate, ...packed, ignoresPacking: true }, template),
    ).rejects.toThrow("expected --packing with a template whose batches of training have segments");

    // Questions too, whose answers are sought in their own texts: as in batches of one, which have no padding to be sought in.
    const spans = {
      task: "question_answering",
      trainIters: 2,
      dataPath: "",
      dataDir: questions(join(folder, "questions")),
    };
    const [alone, together] = [
      await train({ ranks: 1, accumulation: 32 }, { ...spans, dynamicShapes: true }),
      await train({ ranks: 2, zero: 1 }, { ...spans, ...packed }),
    ];
    expect(
      Math.max(...alone.losses.map((loss, step) => Math.abs(loss - (together.losses[step] ?? 0)))),
    ).toBeLessThan(1e-6);
  });
});
