import { type Layout, parseZeroLevel } from "../../src/compute/parallel/index.ts";
import {
  byteScheme,
  calibrated,
  clusters,
  estimateStep,
  factsOf,
  languageModel,
  largestMemory,
  type PlannedPrecision,
  planMemory,
  shareOfStages,
  stateBytes,
} from "../../src/tools/planner/index.ts";
import { type BenchRow, NUM_RANKS, type Sizes, sizes } from "./dimensions.ts";
import { modelOf } from "./job.ts";
import { passingTogether } from "./together.ts";

/** The planner's prediction for a row. */
export interface PlannedRow {
  /** Memory of all ranks together; their parameters are one copy from ZeRO 1 on. */
  readonly totalBytes: number;
  /** Time of a step, by the cost model of this machine's processors; for comparing rows. */
  readonly stepS: number;
  /** Memory of the fullest rank at the original's sizes, float16 with masters, on devices of their own. */
  readonly originalRankBytes: number;
}

/**
 * Predicts a row.
 * @throws {TroupeError} `LAYOUT`
 */
export function planRow({ options }: BenchRow, size: Sizes): PlannedRow {
  const layout = layoutOf(options, size);
  const precision: PlannedPrecision = options.precision === undefined ? "fp32" : "amp";
  const facts = factsOf(languageModel(() => modelOf("gpt", size), size.length));
  const plan = { precision, residence: "process" } as const;
  const scheme = byteScheme(precision);
  const shares = shareOfStages(facts, layout);
  const perStage = NUM_RANKS / shares.length;
  const memory = planMemory(facts, layout, plan);
  const states = memory.flatMap((_, stage) =>
    Array.from({ length: perStage }, (__, index) => {
      const of = stateBytes(shares[stage]?.layouts ?? [], scheme, "process", stage * perStage + index);
      return of.parameters + of.master + of.optimizer;
    }),
  );
  const passing = perStage * passingTogether(memory, layout);
  const totalBytes = states.reduce((sum, bytes) => sum + bytes, passing);
  const cluster = calibrated(clusters.cpu, {});
  const { stepS } = estimateStep(facts, layout, { ...plan, cluster });
  // Its vocabulary is padded to a multiple of 128 for each tensor-parallel rank.
  const multiple = 128 * layout.tp;
  const original = { ...sizes.original.gpt, vocab: Math.ceil(50257 / multiple) * multiple };
  const memories = planMemory(
    factsOf(languageModel(() => modelOf("gpt", original), original.length)),
    layoutOf(options, original),
    {
      precision: options.precision === undefined ? "fp32" : "fp16",
      residence: "device",
    },
  );
  return { totalBytes, stepS, originalRankBytes: largestMemory(memories).peakBytes };
}

function layoutOf({ zero = 0, tp = 1, pp = 1 }: BenchRow["options"], { batch, microBatch }: Sizes): Layout {
  const replicas = NUM_RANKS / (tp * pp);
  return {
    ranks: NUM_RANKS,
    tp,
    pp,
    ep: 1,
    zero: parseZeroLevel(zero),
    schedule: "1f1b",
    chunks: 1,
    batchSize: batch,
    accumulation: batch / (microBatch * replicas),
  };
}
