import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { prepare } from "../../examples/rapidformer/prepare.ts";
import { AdamW, Runtime, type RuntimeOptions } from "../../src/entries/index.ts";
import { defaultArguments } from "../../src/job/rapidformer/index.ts";
import finetune from "../../src/job/rapidformer/jobs/finetune.ts";
import pretrain from "../../src/job/rapidformer/jobs/pretrain.ts";

const path = (name: string) => fileURLToPath(new URL(name, import.meta.url));
const rapidformer = path("../../bin/rapidformer.mjs");
const folder = mkdtempSync(join(tmpdir(), "troupe-test-"));

interface Finished {
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
}

function run(...args: string[]): Promise<Finished> {
  return new Promise((resolve) => {
    const child = execFile(process.execPath, [rapidformer, ...args], { cwd: folder }, (_, out, err) =>
      resolve({ code: child.exitCode, out, err }),
    );
  });
}

interface LoggedEvent {
  readonly kind: string;
  readonly lossNats: number;
  readonly numSamples: number;
  readonly metrics?: Readonly<Record<string, number>>;
}

function eventsIn({ out, err, code }: Finished, kind: string): LoggedEvent[] {
  expect({ code, err }).toMatchObject({ code: 0 });
  const lines = out.split("\n").filter((line) => line.startsWith('{"kind"'));
  return lines.map((line) => JSON.parse(line) as LoggedEvent).filter((event) => event.kind === kind);
}

const lossesOf = (finished: Finished) => eventsIn(finished, "step.finished").map(({ lossNats }) => lossNats);
const listing = (name: string) => path(`../fixtures/rapidformer/${name}.sh`);
const example = (name: string) => path(`../../examples/rapidformer/${name}`);
const quiet = ["--json", "--no-events", "--no-warm-standby", "--threads-per-rank", "1"];
const small = [
  "--num-layers",
  "2",
  "--hidden-size",
  "64",
  "--num-attention-heads",
  "4",
  "--max-position-embeddings",
  "64",
];

/** The losses of a job by the runtime itself. */
async function train(job: string, options: RuntimeOptions, config: Readonly<Record<string, unknown>>) {
  await using runtime = await Runtime.spawn({ threadsPerRank: 1, warmStandby: false, ...options });
  const losses: number[] = [];
  runtime.on("step.finished", ({ step, lossNats }) => {
    losses[step - 1] = lossNats;
  });
  await runtime.run(job, config);
  return losses;
}

describe("rapidformer", () => {
  beforeAll(() => prepare(folder));
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  it("fine-tunes by the original's own listing, as it is printed: 4 ranks, 3 epochs of full batches, evaluated after each", async () => {
    const finished = await run(listing("finetune"), ...quiet);
    expect(finished.err).toMatch(/--mixed-precision: amp-bf16/);
    expect(lossesOf(finished)).toHaveLength(12);
    const judged = eventsIn(finished, "evaluation.finished");
    expect(judged.map(({ numSamples }) => numSamples)).toEqual([61, 61, 61]);
    expect(Object.keys(judged[0]?.metrics ?? {})).toEqual(["accuracy", "f1", "matthews"]);
  });

  it("pre-trains BERT by the original's listings, sizes aside: by names alone, the same where sharded otherwise, and by its template to the same bits", async () => {
    const sizes = [
      ...small,
      "--micro-batch-size=4",
      "--global-batch-size=16",
      "--seq-length=64",
      "--train-iters=5",
    ];
    const words = [
      listing("pretrain-bert"),
      ...sizes,
      "--vocab-file=bert/vocab.txt",
      "--lr-decay-iters=20",
      ...quiet,
    ];
    const [fsdp, plain] = [await run(...words), await run(...words, "--zero", "0")];
    const script = ["--user-script", path("../fixtures/rapidformer/pretrain-bert-template.ts")];
    const template = await run(listing("pretrain-bert-template"), ...script, ...words.slice(1));
    expect(lossesOf(template)).toEqual(lossesOf(fsdp));
    expect(lossesOf(fsdp)).toHaveLength(5);
    // log 128 and log 2: a model that knows nothing.
    expect(lossesOf(fsdp)[0]).toBeGreaterThan(5);
    expect(lossesOf(plain)).toEqual(lossesOf(fsdp));
  });

  it("pre-trains T5 on spans, without a config.json, and the same where ranks split its layers and vocabulary", async () => {
    const words = [
      ...[
        "--task",
        "pretraining",
        "--data-path",
        "book_wiki_owtv2_small_text_sentence",
        "--vocab-extra-ids",
        "20",
      ],
      ...[
        "--tokenizer-type",
        "BertWordPieceLowerCase",
        "--vocab-file",
        "bert/vocab.txt",
        "--hidden-dropout",
        "0",
      ],
      ...["--num-layers", "2", "--hidden-size", "64", "--num-attention-heads", "4", "--lr", "1e-3"],
      ...["--seq-length", "48", "--decoder-seq-length", "24", "--train-iters", "5", "--split", "980,20"],
      ...["--micro-batch-size", "4", "--global-batch-size", "8", ...quiet],
    ];
    const one = lossesOf(await run(...words, "--ranks", "1"));
    // 58 words and marks are padded to 128 for one rank, to 64 for each of two: the model is the same.
    const split = ["--ranks", "2", "--tp", "2", "--make-vocab-size-divisible-by", "64"];
    const two = lossesOf(await run(...words, ...split));
    expect(one).toHaveLength(5);
    expect(one[4]).toBeLessThan(one[0] as number);
    expect(Math.max(...one.map((loss, step) => Math.abs(loss - (two[step] ?? 0))))).toBeLessThan(5e-6);
  });

  it("pre-trains GPT by the original's listing and script at tp 2, pp 2, sizes aside, to the bits of the job that it amounts to", async () => {
    const words = [
      ...[listing("pretrain-gpt"), "--user-script", example("pretrain-gpt.ts"), ...small],
      ...["--data-path", "gpt_small_text_document", "--micro-batch-size=4", "--global-batch-size=8"],
      ...["--seq-length=64", "--train-iters=6", "--lr-decay-iters=120", "--lr-warmup-fraction=.05", ...quiet],
    ];
    const losses = lossesOf(await run(...words));
    expect(losses).toHaveLength(6);
    const config = { prefix: join(folder, "gpt_small_text_document") };
    const layout = { ranks: 4, tp: 2, pp: 2, zero: 2, recompute: true, accumulation: 2, seed: 1234 } as const;
    const job = path("../fixtures/rapidformer/gpt-job.ts");
    expect(losses).toEqual(await train(job, { ...layout, precision: "amp-bf16" }, config));
  });

  it("tells the documents of a row apart by --reset-attention-mask and --reset-position-ids, however layers are split", async () => {
    const words = [
      ...["--task", "pretraining", "--data-path", "gpt_small_text_document", "--split", "980,20"],
      ...["--tokenizer-type", "GPT2BPETokenizer", "--vocab-file", "gpt2-vocab.json"],
      ...["--merge-file", "gpt2-merges.txt", "--attention-dropout", "0", "--hidden-dropout", "0", ...small],
      ...["--seq-length", "64", "--train-iters", "5", "--lr", "1e-3", "--eod-mask-loss"],
      ...["--micro-batch-size", "2", "--global-batch-size", "8", ...quiet],
    ];
    const apart = ["--reset-attention-mask", "--reset-position-ids"];
    const plain = lossesOf(await run(...words, "--ranks", "1"));
    const saved = join(folder, "runs-apart");
    const one = lossesOf(await run(...words, ...apart, "--ranks", "1", "--save", saved));
    const split = ["--ranks", "4", "--tp", "2", "--pp", "2", "--sequence-parallel"];
    // 257 tokens are padded to 384 for one rank and for two.
    split.push("--make-vocab-size-divisible-by", "64");
    const four = lossesOf(await run(...words, ...apart, ...split));
    expect(one).toHaveLength(5);
    expect(one).not.toEqual(plain);
    expect(Math.max(...one.map((loss, step) => Math.abs(loss - (four[step] ?? 0))))).toBeLessThan(5e-6);

    // Its weights alone, by the flags of a checkpoint and by name: from the first step and sample on, the same.
    const short = [...words, ...apart, "--ranks", "1", "--train-iters", "2", "--lr", "1e-4"];
    const tuned = lossesOf(await run(...short, "--load", saved, "--finetune"));
    expect(tuned).toHaveLength(2);
    expect(tuned[0]).toBeLessThan((one[0] ?? 0) - 0.1);
    const named = ["--pretrained-model-name-or-path", join(saved, "step-000005")];
    expect(lossesOf(await run(...short, ...named))).toEqual(tuned);
    expect((await run(...short, "--finetune")).err).toMatch(/expected --load DIR with --finetune/);

    const masked = ["--vocab-file", "bert/vocab.txt", "--tokenizer-type", "BertWordPieceLowerCase"];
    expect((await run(...words, ...apart, ...masked)).err).toMatch(/expected a causal model, .* got bert/);
  });

  it("pre-trains GPT-2 with experts by DeepSpeed's flags, the same where replicas share the experts", async () => {
    const words = [
      ...["--task", "pretraining", "--data-path", "gpt_small_text_document", "--split", "980,20"],
      ...["--tokenizer-type", "GPT2BPETokenizer", "--vocab-file", "gpt2-vocab.json"],
      ...["--merge-file", "gpt2-merges.txt", "--attention-dropout", "0", "--hidden-dropout", "0", ...small],
      ...["--seq-length", "64", "--train-iters", "3", "--lr", "1e-3", "--ranks", "2"],
      ...["--micro-batch-size", "2", "--global-batch-size", "4", "--disable-moe-token-dropping", ...quiet],
    ];
    const experts = ["--num-experts", "4", "--topk", "2", "--mlp-type", "residual"];
    const own = await run(...words, ...experts);
    const shared = await run(...words, ...experts, "--moe-expert-parallel-size", "2");
    const losses = lossesOf(own);
    expect(losses).toHaveLength(3);
    const differences = lossesOf(shared).map((loss, step) => Math.abs(loss - (losses[step] ?? 0)));
    expect(Math.max(...differences)).toBeLessThan(5e-6);
    expect(own.out).toMatch(/"losses":\{"crossEntropy":[\d.]+,"auxiliary":[\d.]+\}/);
    expect((await run(...words, "--topk", "2")).err).toContain(
      "expected no --topk without --num-experts, got 2",
    );
  });

  it("answers a script in Python with what to write instead, whichever way it is given", async () => {
    for (const words of [["--user-script", "trainer.py"], ["trainer.py"]]) {
      const { code, out, err } = await run(...words);
      expect([code === 0, out]).toEqual([false, ""]);
      expect(err).toMatch(
        /expected a job's module in TypeScript or JavaScript, got trainer\.py, in Python \(write its hooks/,
      );
    }
  });

  it("fine-tunes by a template, whose metric after each epoch is the same on 1, 2 and 3 ranks, no sample counted twice", async () => {
    const words = [
      example("finetune-template.sh"),
      "--user-script",
      example("finetune-template.ts"),
      ...quiet,
    ];
    const accuracies = async (...more: string[]) => {
      const finished = await run(...words, "--precision", "fp32", "--epochs", "2", ...more);
      const metrics = eventsIn(finished, "step.finished").flatMap(({ metrics: each }) =>
        each === undefined ? [] : [each],
      );
      expect(metrics.map(({ judged }) => judged)).toEqual([61, 61]);
      return metrics.map(({ accuracy }) => accuracy);
    };
    const one = await accuracies("--ranks", "1", "--micro-batch-size", "24", "--global-batch-size", "24");
    const two = await accuracies("--ranks", "2", "--micro-batch-size", "12", "--global-batch-size", "24");
    const three = await accuracies("--ranks", "3", "--micro-batch-size", "8", "--global-batch-size", "24");
    expect(two).toEqual(one);
    expect(three).toEqual(one);
  });

  it("runs a loop of one's own with compose, loaders and gather, in mixed precision, at ZeRO 3", async () => {
    const script = path("../fixtures/rapidformer/own-loop.ts");
    const words = [
      "--user-script",
      script,
      "--pretrained-model-name-or-path",
      "bert-base-cased",
      "--data-path",
      "glue",
    ];
    const more = [
      "--data-name",
      "mrpc",
      "--epochs",
      "2",
      "--lr",
      "1e-3",
      "--mixed-precision",
      "--global-batch-size",
      "64",
    ];
    const trainLoop = (...layout: string[]) =>
      run(...words, ...more, "--micro-batch-size", "16", ...layout, ...quiet);
    const runs = [
      await trainLoop("--ranks", "1", "--zero", "0"),
      await trainLoop("--ranks", "2", "--zero", "3"),
    ];
    const labels = readFileSync(join(folder, "glue/mrpc/validation.tsv"), "utf8").trim().split("\n").slice(1);
    const inOrder = labels.map((line) => line[0]).join("");
    for (const [index, finished] of runs.entries()) {
      expect(lossesOf(finished)).toHaveLength(8);
      expect(finished.out).toContain(`warning: rank 0 of ${index + 1}, last stage: true`);
      const timed = [...finished.out.matchAll(/^time \(ms\) \| forward: (\S+) \| backward: 0\.00$/gm)];
      expect(timed.map(([, ms]) => Number(ms) > 0)).toEqual([true, true]);
      const epochs = finished.out
        .split("\n")
        .flatMap((line) => (line.startsWith('{"epoch"') ? [JSON.parse(line)] : []));
      expect(epochs.map(({ seen }: { seen: string }) => seen)).toEqual([inOrder, inOrder]);
      expect(epochs.map(({ rate }: { rate: number }) => rate)).toEqual([1e-3 * (36 / 38), 1e-3 * (32 / 38)]);
    }
  });

  it("refuses the original's listing whose global batch four ranks cannot share, before any work begins", async () => {
    const { code, out, err } = await run(listing("finetune-template"));
    expect({ code, out }).toEqual({ code: 2, out: "" });
    expect(err).toContain("got 16 (--global-batch-size 64, or --micro-batch-size 4, or --ranks 1)");
  });

  describe("refuses by name what nothing would read", () => {
    const common = { ...defaultArguments, globalBatchSize: 8, lr: 1e-3 };
    const tuned = { ...common, task: "sequence_classification", dataPath: join(folder, "glue/mrpc") };
    const named = { ...tuned, pretrainedModelNameOrPath: join(folder, "bert"), epochs: 1 };
    const trained = { ...common, seqLength: 32, trainIters: 2, split: "980,20" };
    const bert = {
      ...{ tokenizerType: "BertWordPieceLowerCase", vocabFile: join(folder, "bert/vocab.txt") },
      dataPath: join(folder, "book_wiki_owtv2_small_text_sentence"),
      ...{ numLayers: 2, hiddenSize: 64, numAttentionHeads: 4 },
    };
    const gpt = {
      ...{ ...bert, tokenizerType: "GPT2BPETokenizer", vocabFile: join(folder, "gpt2-vocab.json") },
      ...{ mergeFile: join(folder, "gpt2-merges.txt"), dataPath: join(folder, "gpt_small_text_document") },
    };

    it.each([
      [{ ...named, maskProb: 0.3 }, "expected no --mask-prob with a task's name alone, got 0.3"],
      [{ ...named, vocabFile: "vocab.txt" }, "expected no --vocab-file with a task's name alone"],
      [{ ...named, padToMultipleOf: 64 }, "expected no --pad-to-multiple-of without --dynamic-shapes"],
      [{ ...named, dataDir: "elsewhere" }, "expected one of --data-path and --data-dir, got both"],
    ])("in fine-tuning: %#", async (config, message) => {
      await expect((async () => finetune.data(config, { seed: 1 }))()).rejects.toThrow(message);
    });

    it.each([
      [{ ...gpt, bertBinaryHead: false }, "expected no --bert-no-binary-head in pre-training of gpt2"],
      [{ ...gpt, maskProb: 0.3 }, "expected no --mask-prob in pre-training of gpt2"],
      [{ ...bert, eodMaskLoss: true }, "expected no --eod-mask-loss in pre-training of bert"],
      [{ ...bert, vocabExtraIds: 20, bertBinaryHead: false }, "--bert-no-binary-head in pre-training of t5"],
      [{ ...bert, padToMultipleOf: 64 }, "expected no --pad-to-multiple-of in pre-training"],
      [{ ...bert, vocabExtraIds: 20, initMethodStd: 0.1 }, "expected no --init-method-std of t5, got 0.1"],
      [{ ...gpt, dataImpl: "lazy" }, "expected data of the format of --data-impl lazy at .*, got mmap"],
      [{ ...bert, tokenizerType: "", vocabExtraIds: 20 }, "--tokenizer-type with --vocab-file"],
    ])("in pre-training: %#", async (config, message) => {
      await prepare(folder);
      const opened = (async () => pretrain.data({ ...trained, ...config }, { seed: 1 }))();
      await expect(opened).rejects.toThrow(new RegExp(message));
    });

    it("in what all have in common", () => {
      const plan = (more: object) => () =>
        finetune.training({ ...named, ...more }, { numTrain: 64 } as never);
      expect(plan({ epochs: 0, trainIters: 3, keepLast: true })).toThrow("no --keep-last with --train-iters");
      const rule = (more: object) => () =>
        finetune.optimizer({ parameters: [] } as never, { ...named, ...more });
      expect(rule({ sgdMomentum: 0.5 })).toThrow("expected no --sgd-momentum with --optimizer adam, got 0.5");
      expect(rule({ optimizer: "sgd", adamEps: 1e-6 })).toThrow("no --adam-eps with --optimizer sgd");
      const twice = { ...named, lrDecayIters: 10, lrDecaySamples: 100 };
      const of = new AdamW([["w", { shape: [1] }]], { lr: 1 });
      expect(() => finetune.schedule?.(of, twice, { numTrain: 64 } as never)).toThrow("the decay given once");
    });
  });

  it("says what became of a listing that a shell was given, whose backslashes have comments behind them", async () => {
    const { code, out, err } = await run("--task", "sequence_classification", " ", "--print-argv");
    expect([code, out]).toEqual([0, "--task=sequence_classification\n"]);
    expect(err).toContain("`rapidformer FILE` reads the script as it is meant");
  });

  it("prints every option and setting with the flag that gave it", async () => {
    const { code, out } = await run(listing("finetune"), "--print-config", "--lr", "1e-4");
    expect(code).toBe(0);
    expect(out).toMatch(/^ranks = 4 +# environment CUDA_VISIBLE_DEVICES$/m);
    expect(out).toMatch(/^zero = 1 +# flag --zero-1-memory-optimization$/m);
    expect(out).toMatch(/^lr = 0.0001 +# flag --lr$/m);
    expect(out).toMatch(/^steps = 12 +# job$/m);
  });
});
