import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { TroupeError } from "../errors.ts";
import type { TrainingPlan } from "../job/index.ts";
import {
  AdamW,
  MegatronSchedule,
  type NamedShapes,
  type OptimizerSpec,
  type Schedule,
  SGD,
} from "../optim/index.ts";
import { type Arguments, flagOf } from "./arguments.ts";

/** What the arguments ask for that contradicts itself, or is lacking. */
export function argumentError(expected: string, got: string, hint?: string): TroupeError {
  return new TroupeError("ARGUMENTS", { where: "rapidformer", expected, got, hint });
}

/** Samples in one step. */
export function batchSizeOf({ globalBatchSize }: Arguments): number {
  if (globalBatchSize > 0) return globalBatchSize;
  throw argumentError("--global-batch-size or --micro-batch-size", "neither");
}

/** Steps of one epoch: batches that are whole, at least one. */
export function epochSteps(args: Arguments, numTrain: number): number {
  return Math.max(1, Math.floor(numTrain / batchSizeOf(args)));
}

/**
 * Steps in all.
 * @param numTrain - samples of one epoch
 * @throws {TroupeError} `ARGUMENTS` unless the length is given once
 */
export function stepsOf(args: Arguments, numTrain: number): number {
  const { epochs, trainIters, trainSamples, keepLast } = args;
  const said = (["epochs", "trainIters", "trainSamples"] as const).filter((name) => args[name] > 0);
  if (said.length !== 1)
    throw argumentError(
      "one of --epochs, --train-iters and --train-samples",
      said.map(flagOf).join(" and ") || "none",
    );
  if (trainIters > 0) return trainIters;
  if (trainSamples > 0) return Math.floor(trainSamples / batchSizeOf(args));
  if (keepLast) return Math.ceil((epochs * numTrain) / batchSizeOf(args));
  return Math.max(1, Math.round(epochs * epochSteps(args, numTrain)));
}

/** @returns what a run's plan has of the arguments; evaluations are the caller's to add */
export function planOf(args: Arguments, numTrain: number): TrainingPlan {
  const { clipGrad, pretrainedModelNameOrPath, loadedWeights } = args;
  const folder = loadedWeights || pretrainedModelNameOrPath;
  return {
    steps: stepsOf(args, numTrain),
    batchSize: batchSizeOf(args),
    ...(clipGrad > 0 && { clipNorm: clipGrad }),
    ...(folder !== "" && hasWeights(folder) && { pretrained: folder }),
  };
}

/** The optimizer of the flags. @throws {TroupeError} `ARGUMENTS` without a rate */
export function optimizerOf(parameters: NamedShapes, args: Arguments): OptimizerSpec {
  const { lr, weightDecay, adamBeta1, adamBeta2, adamEps, sgdMomentum } = args;
  if (!(lr > 0)) throw argumentError("--lr above 0", `${lr}`, "such as --lr 2e-5");
  if (args.optimizer === "sgd") return new SGD(parameters, { lr, momentum: sgdMomentum, weightDecay });
  return new AdamW(parameters, { lr, betas: [adamBeta1, adamBeta2], eps: adamEps, weightDecay });
}

/**
 * The schedule of the flags, counted in samples as Megatron does. A run that is shorter than its warm-up ends in it.
 * @throws {TroupeError} `ARGUMENTS` where the warm-up is given twice
 */
export function scheduleOf(optimizer: OptimizerSpec, args: Arguments, numTrain: number): Schedule {
  const { lrDecayIters, lrDecaySamples, lrWarmupIters, lrWarmupSamples, lrWarmupFraction, minLr } = args;
  const warmups = (["lrWarmupIters", "lrWarmupSamples", "lrWarmupFraction"] as const).filter(
    (name) => args[name] > 0,
  );
  if (warmups.length > 1) throw argumentError("the warm-up given once", warmups.map(flagOf).join(" and "));
  const batchSize = batchSizeOf(args);
  const decay = lrDecaySamples || (lrDecayIters || stepsOf(args, numTrain)) * batchSize;
  const warmupSamples = lrWarmupSamples || lrWarmupIters * batchSize || lrWarmupFraction * decay;
  const decaySamples = Math.max(decay, Math.floor(warmupSamples) + 1);
  return new MegatronSchedule(optimizer, {
    style: args.lrDecayStyle,
    batchSize,
    decaySamples,
    warmupSamples,
    minLr,
  });
}

/** The parsed config.json of a model's folder. @throws {TroupeError} `ARGUMENTS` where there is none */
export function readModelConfig(folder: string): Readonly<Record<string, unknown>> {
  const path = join(folder, "config.json");
  try {
    return JSON.parse(readFileSync(path, "utf8")) as Record<string, unknown>;
  } catch (cause) {
    throw argumentError(`a model's config.json at ${path}`, (cause as Error).message);
  }
}

function hasWeights(folder: string): boolean {
  return existsSync(folder) && readdirSync(folder).some((name) => name.endsWith(".safetensors"));
}
