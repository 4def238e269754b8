import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import {
  AdamW,
  MegatronSchedule,
  type NamedShapes,
  type OptimizerSpec,
  type Schedule,
  SGD,
} from "../../compute/optim/index.ts";
import { type RampUp, stepsOfSamples } from "../../compute/samples.ts";
import { TroupeError, whichPathWasMeant } from "../../errors/index.ts";
import { maxFileBytes, readBoundedSync, readBoundedTextSync } from "../../errors/untrusted/index.ts";
import { hasWeights, parseJsonObject } from "../../library/checkpoint/index.ts";
import { configOfFile } from "../../library/models/index.ts";
import type { BestRule, TrainingPlan } from "../index.ts";
import { type Arguments, defaultArguments, flagOf } from "./arguments.ts";

/** The error for arguments that are missing or contradict each other. */
export function argumentError(expected: string, got: string, hint?: string): TroupeError {
  return new TroupeError("ARGUMENTS", { where: "rapidformer", expected, got, hint });
}

/** Refuses a given flag that `where` would ignore. @throws {TroupeError} `ARGUMENTS` naming the flag */
export function refuseUnread(args: Arguments, names: readonly string[], where: string, hint?: string): void {
  const given = names.find((name) => args[name] !== defaultArguments[name]);
  if (given === undefined) return;
  throw argumentError(`no ${flagOf(given)} ${where}`, `${args[given]}`, hint ?? "nothing would read it");
}

/** Refuses flags that would be ignored. @throws {TroupeError} `ARGUMENTS` for `--dynamic-shapes` and `--packing` */
export function refuseShapes({ dynamicShapes, packing }: Arguments, got: string): void {
  if (dynamicShapes || packing)
    throw argumentError(`a Finetuner, or a task, with ${packing ? "--packing" : "--dynamic-shapes"}`, got);
}

/** Samples in one step. */
export function batchSizeOf({ globalBatchSize }: Arguments): number {
  if (globalBatchSize > 0) return globalBatchSize;
  throw argumentError("--global-batch-size or --micro-batch-size", "neither");
}

/** Number of samples that `--dynamic-shapes` sorts at a time: a full global batch, which with a ramp-up spans several steps at first. */
export function stepWindow(args: Arguments): { readonly window: number; readonly isStep: boolean } {
  return { window: batchSizeOf(args), isStep: args.rampupBatchSize === "" };
}

/**
 * Reads the batch size ramp-up; undefined without one.
 * @throws {TroupeError} `ARGUMENTS` unless three numbers lead to the global batch, in a run counted in samples
 */
function rampUpOf(args: Arguments): RampUp | undefined {
  const { rampupBatchSize: text, trainSamples } = args;
  if (text === "") return undefined;
  const end = batchSizeOf(args);
  const [start = 0, increment = 0, samples = 0, ...others] = text.split(" ").map(Number);
  const areNumbers = [start, increment, samples].every((each) => Number.isSafeInteger(each) && each > 0);
  if (!areNumbers || others.length > 0 || start > end || (end - start) % increment !== 0)
    throw argumentError(
      `--rampup-batch-size START INCREMENT SAMPLES, from START in full increments to ${end}`,
      text,
      `such as --rampup-batch-size ${Math.ceil(end / 4)} ${Math.ceil(end / 4)} 1000`,
    );
  if (!(trainSamples > 0))
    throw argumentError("--train-samples with --rampup-batch-size", "a length in steps or epochs");
  return { start, end, increment, samples };
}

/** Steps of one epoch: full batches, at least one. */
export function epochSteps(args: Arguments, numTrain: number): number {
  return Math.max(1, Math.floor(numTrain / batchSizeOf(args)));
}

/** Total number of steps. @param numTrain - samples of an epoch @throws {TroupeError} `ARGUMENTS` unless it is given once */
export function stepsOf(args: Arguments, numTrain: number): number {
  const { epochs, trainIters, trainSamples, keepLast } = args;
  const said = (["epochs", "trainIters", "trainSamples"] as const).filter((name) => args[name] > 0);
  if (said.length !== 1)
    throw argumentError(
      "one of --epochs, --train-iters and --train-samples",
      said.map(flagOf).join(" and ") || "none",
    );
  if (epochs === 0) refuseUnread(args, ["keepLast"], `with ${said.map(flagOf)}`);
  if (trainIters > 0) return trainIters;
  const rampUp = rampUpOf(args);
  if (rampUp !== undefined) return stepsOfSamples(rampUp, trainSamples);
  if (trainSamples > 0) return Math.floor(trainSamples / batchSizeOf(args));
  if (keepLast) return Math.ceil((epochs * numTrain) / batchSizeOf(args));
  return Math.max(1, Math.round(epochs * epochSteps(args, numTrain)));
}

/**
 * The training plan of the arguments; the caller adds evaluations.
 * @throws {TroupeError} `ARGUMENTS` for a length that is given twice, or a model's folder without weights
 */
export function planOf(args: Arguments, numTrain: number): TrainingPlan {
  const { clipGrad } = args;
  const rampUp = rampUpOf(args);
  const best = bestRuleOf(args);
  return {
    steps: stepsOf(args, numTrain),
    batchSize: batchSizeOf(args),
    ...(rampUp && { rampUp: { start: rampUp.start, increment: rampUp.increment, samples: rampUp.samples } }),
    ...(clipGrad > 0 && { clipNorm: clipGrad }),
    ...(best && { best }),
    ...beginningOf(args),
  };
}

/** The initial weights, and the files that saved models carry on. */
function beginningOf(args: Arguments): Pick<TrainingPlan, "pretrained" | "companions"> {
  const { pretrainedModelNameOrPath: model, loadedWeights, fresh } = args;
  if (fresh && (model === "" || loadedWeights !== ""))
    throw argumentError(
      "--fresh with --pretrained-model-name-or-path alone",
      model === "" ? "no folder" : "--finetune, whose weights the run is to begin with",
    );
  const folder = loadedWeights || model;
  if (folder === "") return {};
  if (!fresh && !hasWeights(folder))
    throw argumentError(
      `weights in ${folder}: model.safetensors, pytorch_model.bin, or the files of their index`,
      `${existsSync(folder) ? readdirSync(folder).slice(0, 6).join(", ") || "an empty folder" : "no folder"}`,
      whichPathWasMeant(folder) ?? "--fresh draws them from the seed",
    );
  const tokenizer = hasOwnTokenizer(args, model || folder);
  return {
    ...(!fresh && { pretrained: folder }),
    companions: { folder: model || folder, ...(!tokenizer && { tokenizer }) },
  };
}

/** Tasks whose vocabulary is the characters of their data. */
const withOwnCharacters: ReadonlySet<string> = new Set(["speech_recognition"]);

/** Whether a run uses the tokenizer of its model's folder, from the folder's files or from equal ones. */
function hasOwnTokenizer({ task, tokenizerType, vocabFile, mergeFile }: Arguments, folder: string): boolean {
  if (withOwnCharacters.has(task)) return false;
  if (tokenizerType === "" || vocabFile === "") return true;
  const own = tokenizerType === "GPT2BPETokenizer" ? ["vocab.json", "merges.txt"] : ["vocab.txt"];
  return own.every((name, index) => {
    const paths = [join(folder, name), index === 0 ? vocabFile : mergeFile];
    if (!paths.every((path) => existsSync(path))) return false;
    const [one, other] = paths.map((path) => readBoundedSync(path, maxFileBytes.tokenizer)) as [
      Buffer,
      Buffer,
    ];
    return one.equals(other);
  });
}

/** Rule that compares evaluations, if requested; Hugging Face's prefix `eval_` is dropped. */
function bestRuleOf(args: Arguments): BestRule | undefined {
  const { earlyStoppingPatience: patience, metricForBestModel: metric, greaterIsBetter } = args;
  if (patience === 0 && metric === "") {
    refuseUnread(args, ["greaterIsBetter"], "without --metric-for-best-model");
    return undefined;
  }
  return {
    ...(metric !== "" && { metric: metric.replace(/^eval_/, "") }),
    mode: greaterIsBetter ? "max" : "min",
    ...(patience > 0 && { patience }),
  };
}

/** The optimizer of the flags. @throws {TroupeError} `ARGUMENTS` without a learning rate */
export function optimizerOf(parameters: NamedShapes, args: Arguments): OptimizerSpec {
  const { lr, weightDecay, adamBeta1, adamBeta2, adamEps, sgdMomentum } = args;
  if (!(lr > 0)) throw argumentError("--lr above 0", `${lr}`, "such as --lr 2e-5");
  const ofOthers = args.optimizer === "sgd" ? ["adamBeta1", "adamBeta2", "adamEps"] : ["sgdMomentum"];
  refuseUnread(args, ofOthers, `with --optimizer ${args.optimizer}`);
  if (args.optimizer === "sgd") return new SGD(parameters, { lr, momentum: sgdMomentum, weightDecay });
  return new AdamW(parameters, { lr, betas: [adamBeta1, adamBeta2], eps: adamEps, weightDecay });
}

/**
 * The schedule of the flags, counted in samples as in Megatron. A run that is shorter than its warm-up ends in it.
 * @throws {TroupeError} `ARGUMENTS` if the warm-up or the decay is given twice
 */
export function scheduleOf(optimizer: OptimizerSpec, args: Arguments, numTrain: number): Schedule {
  const { lrDecayIters, lrDecaySamples, lrWarmupIters, lrWarmupSamples, lrWarmupFraction, minLr } = args;
  const warmups = (["lrWarmupIters", "lrWarmupSamples", "lrWarmupFraction"] as const).filter(
    (name) => args[name] > 0,
  );
  if (warmups.length > 1) throw argumentError("the warm-up given once", warmups.map(flagOf).join(" and "));
  if (lrDecaySamples > 0 && lrDecayIters > 0)
    throw argumentError("the decay given once", "--lr-decay-iters and --lr-decay-samples");
  const batchSize = batchSizeOf(args);
  const inAll = args.trainSamples || stepsOf(args, numTrain) * batchSize;
  const decay = lrDecaySamples || lrDecayIters * batchSize || inAll;
  const warmupSamples = lrWarmupSamples || lrWarmupIters * batchSize || lrWarmupFraction * decay;
  const decaySamples = Math.max(decay, Math.floor(warmupSamples) + 1);
  return new MegatronSchedule(optimizer, {
    style: args.lrDecayStyle,
    batchSize,
    rampUp: rampUpOf(args),
    decaySamples,
    warmupSamples,
    minLr,
  });
}

/** Reads the config.json of a model's folder, for models and tasks. @throws {TroupeError} `ARGUMENTS` if there is none */
export function readModelConfig(folder: string): Readonly<Record<string, unknown>> {
  const path = join(folder, "config.json");
  try {
    return configOfFile(parseJsonObject(readBoundedTextSync(path, maxFileBytes.config), path));
  } catch (cause) {
    throw argumentError(
      `a model's config.json at ${path}`,
      (cause as Error).message,
      whichPathWasMeant(path),
    );
  }
}

/** The sampling rate of a model folder's preprocessor, if it has one. @throws errors of reading the file */
export function samplingRateOf(folder: string): number | undefined {
  const path = join(folder, "preprocessor_config.json");
  if (!existsSync(path)) return undefined;
  const { sampling_rate: rate } = parseJsonObject(readBoundedTextSync(path, maxFileBytes.config), path);
  return typeof rate === "number" ? rate : undefined;
}
