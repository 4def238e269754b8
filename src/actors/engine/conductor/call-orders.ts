import type { BatchRequest, RankAccumulated, RankPlan } from "../../protocols/index.ts";
import { splitOf } from "../../protocols/index.ts";
import type { Accumulated, LiveCall } from "./call-log.ts";

/** A call of a program. */
export type CallOfProgram = Extract<LiveCall, { kind: "accumulate" | "call" }>;

/** Cuts a call's batch into micro-batches, in order: for a gradient as many as in a job's step, else as large as a job's. */
export function requestsOf(
  { kind, number, in: { numSamples } }: CallOfProgram,
  { layout, training }: RankPlan,
): readonly BatchRequest[] {
  const split = splitOf(number);
  if (kind === "accumulate") {
    const numBatches = layout.mesh.dp * training.accumulation;
    const size = numSamples / numBatches;
    const step = { position: 0, numBatches };
    return Array.from({ length: numBatches }, (_, index) => ({
      split,
      position: index * size,
      numSamples: size,
      step,
    }));
  }
  const size = training.microBatchSize;
  return Array.from({ length: Math.ceil(numSamples / size) }, (_, index) => ({
    split,
    position: index * size,
    numSamples: Math.min(size, numSamples - index * size),
  }));
}

/**
 * The loss of one accumulation, `weight` times the ranks' means, in rank order.
 * @param numBefore - the step's earlier micro-batches of each replica
 */
export function accumulatedIn(
  ranks: readonly RankAccumulated[],
  numBefore: number,
  weight: number,
): Accumulated {
  const lossNats = meanOf(ranks.flatMap((rank) => rank.lossesNats.slice(numBefore))) / weight;
  const named = ranks.flatMap((rank) => rank.namedLosses.slice(numBefore));
  const [first] = named;
  if (first === undefined) return { lossNats };
  const losses = Object.keys(first).map((name) => [
    name,
    meanOf(named.map((each) => each[name] ?? Number.NaN)) / weight,
  ]);
  return { lossNats, losses: Object.fromEntries(losses) };
}

const meanOf = (values: readonly number[]) =>
  values.reduce((total, value) => total + value, 0) / values.length;
