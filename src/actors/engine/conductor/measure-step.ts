import type { EventOf } from "../../../job/events/index.ts";
import type { RankStepped, StepUpdated } from "../../protocols/index.ts";
import { sumOfCounted } from "./evaluation.ts";

/** The figures of a step that ranks and shards measure. */
export type StepMeasures = Omit<
  EventOf<"step.finished">,
  "kind" | "step" | "lossNats" | "losses" | "metrics" | "residentBytes" | "timeMs" | "schemaVersion"
>;

/**
 * Joins the measurements of ranks and shards in one step.
 * @param durationMs - since the end of the step before it, or of the evaluation
 */
export function measureStep(
  ranks: readonly RankStepped[],
  shards: readonly StepUpdated[],
  durationMs: number,
): StepMeasures {
  const numSamples = sum(ranks.map((rank) => rank.numSamples));
  const numTokens = sumOfCounted(ranks.map((rank) => rank.numTokens));
  const exposedMs = mean(ranks.map(({ waits }) => waits.exposedMs));
  const gatherMs = mean(ranks.map(({ waits }) => waits.gatherMs));
  const reduceMs = mean(shards.map((shard) => shard.reduceMs));
  const communicationMs = gatherMs + reduceMs;
  return {
    learningRate: ranks[0]?.learningRate ?? 0,
    gradientNorm: shards[0]?.gradientNorm ?? Number.NaN,
    skipped: shards[0]?.skipped ?? false,
    ...(shards[0]?.lossScale === undefined ? {} : { lossScale: shards[0].lossScale }),
    numSamples,
    samplesPerSecond: (numSamples * 1000) / durationMs,
    ...(numTokens === undefined ? {} : { numTokens, tokensPerSecond: (numTokens * 1000) / durationMs }),
    durationMs,
    overlap: communicationMs === 0 ? 1 : Math.max(0, 1 - exposedMs / communicationMs),
    exposedMs,
    gatherMs,
    reduceMs,
    updateMs: mean(shards.map((shard) => shard.updateMs)),
    dataMs: mean(ranks.map(({ waits }) => waits.dataMs)),
  };
}

const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0);

const mean = (values: readonly number[]) => sum(values) / values.length;
