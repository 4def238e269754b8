import { readFileSync } from "node:fs";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { scriptNames } from "../../scripts/rapidformer-names.ts";
import { rapidformerPage } from "../../scripts/rapidformer-page.ts";
import * as entry from "../../src/entries/rapidformer.ts";
import * as tasks from "../../src/entries/tasks.ts";
import { defaultArguments, type Flag, flags } from "../../src/job/rapidformer/index.ts";
import { planOf } from "../../src/job/rapidformer/run-parts.ts";
import { numSamplesOf } from "../../src/job/rapidformer/trainer.ts";
import { readListing } from "../../src/tools/cli/rapidformer/listing.ts";
import { argvOf, parse } from "../../src/tools/cli/rapidformer/parse.ts";
import { launchVariables, settle } from "../../src/tools/cli/rapidformer/settle.ts";
import { megatronFlags } from "../fixtures/rapidformer/megatron-flags.ts";

const listing = (name: string) =>
  readListing(readFileSync(new URL(`../fixtures/rapidformer/${name}.sh`, import.meta.url), "utf8"), {});
const wordsOf = (name: string) => listing(name).commands.flat().slice(1);
const lastOf = (given: readonly { path: readonly string[]; value: unknown }[], path: string) =>
  given.findLast((each) => each.path.join(".") === path)?.value;
const fourDevices = { CUDA_VISIBLE_DEVICES: "4,5,6,7", NNODES: "1", NODE_RANK: "0" };
const without = (words: readonly string[], ...names: string[]) =>
  words.filter((word, index) => !names.includes(word) && !names.includes(words[index - 1] ?? ""));

describe("Rapidformer's command line", () => {
  it("reads the original's listings as they are printed: comments behind backslashes, lines that lack one, variables", () => {
    expect(listing("finetune").environment).toEqual({
      ...fourDevices,
      MASTER_ADDR: "localhost",
      MASTER_PORT: "6010",
    });
    expect(Object.fromEntries(parse(wordsOf("finetune")))).toEqual({
      "--task": "sequence_classification",
      "--pretrained-model-name-or-path": "bert-base-cased",
      "--data-path": ["glue"],
      "--data-name": "mrpc",
      "--epochs": 3,
      "--micro-batch-size": 16,
      "--global-batch-size": 64,
      "--lr": 2e-5,
      "--lr-decay-style": "linear",
      "--lr-warmup-iters": 100,
      "--weight-decay": 0.01,
      "--clip-grad": 1,
      "--mixed-precision": true,
      "--onnx-runtime-training": true,
      "--zero-1-memory-optimization": true,
    });
    const template = parse(wordsOf("finetune-template"));
    expect(template.get("--user-script")).toBe("rapidformer_finetune_huggingface_bert_trainer.py");
    expect([template.get("--mixed-precision"), template.get("--zero-3-memory-optimization")]).toEqual([
      true,
      true,
    ]);
    expect(parse(wordsOf("pretrain-gpt")).get("--data-path")).toEqual([
      "book_wiki_owtv2_small_text_sentence",
    ]);
    expect(parse(wordsOf("pretrain-bert")).get("--lr-warmup-fraction")).toBe(0.01);
    expect(parse(wordsOf("pretrain-bert-template")).get("--global-batch-size")).toBe(64);
  });

  it("has an export for every name that scripts import, and says outside of a rank where it is for", () => {
    for (const { here } of scriptNames) expect({ ...entry, ...tasks }, here).toHaveProperty(here);
    expect(() => entry.mpu.getDataParallelRank()).toThrow(
      "expected a call in a training loop or a hook of a rank",
    );
    expect(() => entry.getLogger().info("x")).toThrow(
      "expected a call in a training loop or a hook of a rank",
    );
    const timer = entry.getTimers()("a");
    expect(() => timer.stop()).toThrow('[getTimers()("a")] expected a running timer, got a stopped one');
    timer.start();
    expect(() => timer.start()).toThrow("expected a stopped timer, got a running one");
    timer.stop();
    const elapsedS = timer.elapsed(false);
    expect([timer.elapsed(), timer.elapsed()]).toEqual([elapsedS, 0]);
  });

  it("is not misled by what a shell makes of a backslash before a comment", () => {
    expect(parse(["--task", "pretraining", " ", "--lr=1e-3"]).get("--lr")).toBe(1e-3);
  });

  it("knows every flag of Megatron-LM of 2022: mapped, without effect for a reason, or refused with what to use", () => {
    const known = new Set(flags.flatMap(({ flag, also }) => [flag, ...also]));
    expect(megatronFlags.filter((name) => !known.has(name))).toEqual([]);
    expect(new Set(flags.map(({ flag }) => flag)).size).toBe(flags.length);
    for (const { flag, fate, takes } of flags) {
      if (fate.is !== "refused") continue;
      const words = takes === "nothing" ? [flag] : [flag, "1"];
      expect(() => parse(words), flag).toThrow(`got ${flag} (use ${fate.use}`);
    }
  });

  it("comes back to the same from its own options, whatever was typed", () => {
    const words = fc
      .string({ unit: fc.constantFrom(..."abcXYZ019/._ =-'$é") })
      .filter((text) => text.trim() !== "");
    const valuesOf = ({ takes }: Flag): fc.Arbitrary<string[]> => {
      if (takes === "nothing") return fc.constant([]);
      if (takes === "number")
        return fc.double({ noNaN: true, noDefaultInfinity: true }).map((value) => [`${value}`]);
      if (takes === "integer") return fc.integer().map((value) => [`${value}`]);
      if (takes === "text") return words.map((value) => [value]);
      if (takes === "texts")
        return fc.array(
          words.filter((word) => !word.startsWith("--")),
          { minLength: 1, maxLength: 4 },
        );
      return fc.constantFrom(...takes).map((value) => [value]);
    };
    const accepted = flags.filter(({ fate }) => fate.is !== "refused");
    const typed = fc
      .constantFrom(...accepted)
      .chain((flag) =>
        fc
          .tuple(fc.constantFrom(flag.flag, ...flag.also), valuesOf(flag))
          .map(([name, values]) => (values.length === 1 ? [`${name}=${values[0]}`] : [name, ...values])),
      );
    fc.assert(
      fc.property(fc.array(typed, { maxLength: 12 }), (all) => {
        const read = parse(all.flat());
        const written = argvOf(read);
        expect(new Map(parse(written))).toEqual(new Map(read));
        expect(argvOf(parse(written))).toEqual(written);
      }),
      { seed: 13, numRuns: 400 },
    );
  });

  it.each([
    [["--lr", "fast"], 'expected --lr to be a number, got "fast"'],
    [["--epochs"], "expected a value for --epochs, got none"],
    [["--train-iters", "1.5"], "expected --train-iters to be a whole number"],
    [["--task", "sequence_clasification"], "did you mean sequence_classification?"],
    [["--golbal-batch-size", "3"], "did you mean --global-batch-size?"],
    [["--mixed-precision=yes"], "expected --mixed-precision alone"],
  ])("refuses %j by name", (words, message) => {
    expect(() => parse(words)).toThrow(message);
  });

  it("takes its ranks from the launcher's devices, its micro-batches from both batch sizes, its layout from the flags", async () => {
    const { given, userScript } = await settle(
      parse(without(wordsOf("pretrain-gpt"), "--data-path", "--data-impl", "--split")),
      [],
      fourDevices,
    );
    expect(userScript).toBe("rapidformer_pretrain_megatron_gpt_trainer.py");
    const paths = [
      "ranks",
      "tp",
      "pp",
      "zero",
      "recompute",
      "precision",
      "accumulation",
      "output.logEverySteps",
    ];
    expect(paths.map((path) => lastOf(given, path))).toEqual([4, 2, 2, 2, true, "amp-bf16", 8, 1]);
    const settings = [
      "trainIters",
      "lr",
      "lrDecayIters",
      "lrWarmupFraction",
      "globalBatchSize",
      "microBatchSize",
      "seed",
    ];
    expect(settings.map((name) => lastOf(given, `set.${name}`))).toEqual([
      100, 1e-3, 2000, 0.01, 128, 16, 1234,
    ]);
  });

  it("counts replicas by the runtime's own flags too, and pads a vocabulary for the ranks that split it", async () => {
    const others = [
      { path: ["tp"], value: 2, origin: "flag", by: "--tp" },
      { path: ["ranks"], value: 4, origin: "flag", by: "--ranks" },
    ] as const;
    const words = ["--micro-batch-size", "4", "--global-batch-size", "32"];
    const { given } = await settle(parse(words), others, {});
    expect(lastOf(given, "accumulation")).toBe(4);
    expect(lastOf(given, "set.tensorModelParallelSize")).toBe(2);
    await expect(settle(parse(["--pipeline-model-parallel-size", "4"]), others, {})).rejects.toThrow(
      "expected ranks that 8 divide",
    );
  });

  it.each([
    [
      "a global batch that the replicas cannot share, with three ways out",
      ["--micro-batch-size", "16", "--global-batch-size", "16"],
      "expected --global-batch-size to be a multiple of 64, --micro-batch-size 16 on each of 4 replicas, got 16 (--global-batch-size 64, or --micro-batch-size 4, or --ranks 1)",
    ],
    [
      "a batch that grows by what the replicas cannot share",
      ["--micro-batch-size=4", "--global-batch-size=64", "--rampup-batch-size", "16", "24", "1000"],
      "expected --rampup-batch-size of multiples of 16, --micro-batch-size 4 on each of 4 replicas, got 24",
    ],
    [
      "more stages than there are ranks, which Megatron would quietly take away",
      ["--tensor-model-parallel-size", "4", "--pipeline-model-parallel-size", "4"],
      "got 4 (on 4 ranks there is room for 1 × 4, 2 × 2, 4 × 1)",
    ],
    [
      "two ways to split states",
      ["--zero-1-memory-optimization", "--fsdp-memory-optimization"],
      "expected one of the flags that split states, got --zero-1-memory-optimization and --fsdp-memory-optimization",
    ],
    ["two precisions", ["--fp16", "--bf16"], "expected one precision, got --fp16 and --bf16"],
    [
      "a model that nobody has registered",
      ["--pretrained-model-name-or-path", "nobody/has-it"],
      "expected a model:",
    ],
  ])("refuses %s", async (_, words, message) => {
    const offline = { ...fourDevices, HF_HUB_OFFLINE: "1", HF_HOME: "/nowhere" };
    await expect(settle(parse(words), [], offline)).rejects.toThrow(message);
  });

  it("grows a batch in as many steps as Megatron counts, in runs that are counted in samples", () => {
    const asked = { ...defaultArguments, globalBatchSize: 12, rampupBatchSize: "4 4 16", trainSamples: 100 };
    // 4, 4, 8 and 12 samples while 16 are consumed, then full batches of the 72 that are left.
    expect(planOf(asked, 0)).toMatchObject({
      ...{ steps: 10, batchSize: 12, rampUp: { start: 4, increment: 4, samples: 16 } },
    });
    expect(() => planOf({ ...asked, trainSamples: 0, trainIters: 5 }, 0)).toThrow(
      "expected --train-samples with --rampup-batch-size",
    );
    for (const rampupBatchSize of ["4 5 16", "4 4", "16 4 16", "4 x 16"])
      expect(() => planOf({ ...asked, rampupBatchSize }, 0)).toThrow("in full increments to 12");
  });

  it("reads no sample for evaluations that never fall due", () => {
    const args = { ...defaultArguments, trainIters: 30, globalBatchSize: 4, evalIters: 2 };
    expect(numSamplesOf({ ...args, evalInterval: 10 })).toEqual([120, 32, 8]);
    expect(numSamplesOf({ ...args, evalInterval: 0 })).toEqual([120, 0, 8]);
  });

  it("has a page that is made of the table: npm run docs:write", () => {
    const page = readFileSync(new URL("../../docs/reference/rapidformer.md", import.meta.url), "utf8");
    expect(page).toBe(rapidformerPage());
  });

  it("joins several hosts by the launcher's words: one command on each, all with as many ranks", async () => {
    const hosts = { ...fourDevices, NNODES: "2", NODE_RANK: "1" };
    expect(launchVariables(hosts)).toEqual({ RANK: "1", WORLD_SIZE: "2" });
    expect(launchVariables(fourDevices)).toEqual({});
    expect(lastOf((await settle(parse([]), [], hosts)).given, "ranks")).toBe(8);
    expect(() => launchVariables({ NNODES: "2", NODE_RANK: "2" })).toThrow(
      "expected NODE_RANK from 0 to below NNODES",
    );
  });

  it("takes float16 for mixed precision on a GPU, and says aloud that bfloat16 stands for it on the CPU", async () => {
    const on = (device: string) =>
      settle(
        parse(["--mixed-precision"]),
        [{ path: ["device"], value: device, origin: "flag", by: "--device" }],
        {},
      );
    expect(lastOf((await on("cuda")).given, "precision")).toBe("amp-fp16");
    expect((await on("cpu")).notices[0]).toMatch(/^--mixed-precision: amp-bf16/);
  });
});
