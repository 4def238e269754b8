import type { TroupeEventBody } from "../../../job/events/index.ts";
import {
  histogramsOf,
  type InspectionRequest,
  type Inspections,
  joinUpdates,
  summarizeParameters,
  summarizeTensors,
} from "../../inspect/index.ts";
import type { DeclaredModel, MetricSum, RankStepped, StepUpdated } from "../../protocols/index.ts";
import { sum, sumOfCounted } from "./evaluation.ts";
import type { RunListener } from "./run-listener.ts";

/** The results of a step, and the requests that it was inspected for. */
export interface StepDone {
  readonly ranks: readonly RankStepped[];
  readonly shards: readonly StepUpdated[];
  readonly requests: readonly InspectionRequest[];
  /** The time of the last answer, by `performance.now()`: waiting for the report is not part of the step. */
  readonly atMs: number;
}

/** The receivers of step reports, and their extent. */
export interface StepReportOptions {
  readonly inspections: Inspections;
  readonly memoryEverySteps: number;
  readonly emit: (event: TroupeEventBody) => void;
  /** Receives each step before. */
  readonly listener: Pick<RunListener, "stepMade">;
  readonly residentBytes: () => number;
}

/** Reports the results of steps, one after the other, and their durations. */
export class StepReport {
  readonly #options: StepReportOptions;
  #doneAtMs = 0;

  constructor(options: StepReportOptions) {
    this.#options = options;
  }

  restartClock(atMs = performance.now()): void {
    this.#doneAtMs = atMs;
  }

  /** Emits the events of a step and answers its inspection requests. @returns its loss, mean over all ranks */
  emit(
    step: number,
    { ranks, shards, requests, atMs }: StepDone,
    parameters: DeclaredModel["parameters"],
  ): number {
    const { emit, listener, inspections, memoryEverySteps } = this.#options;
    const durationMs = atMs - this.#doneAtMs;
    this.#doneAtMs = atMs;
    // Rank after rank: the order in which one rank would accumulate the micro-batches.
    const lossNats = sum(ranks.flatMap((rank) => rank.lossesNats)) / numCountedIn(ranks);
    const residentBytes = this.#options.residentBytes();
    const measured = { ...measureStep(ranks, shards, durationMs), residentBytes };
    listener.stepMade(step, lossNats, durationMs);
    const losses = meanLosses(ranks);
    const metrics = meanMetrics(ranks);
    const blockCalls = sumOfCalls(ranks);
    emit({
      kind: "step.finished",
      step,
      lossNats,
      ...(losses && { losses }),
      ...(metrics && { metrics }),
      ...measured,
      ...(blockCalls && { blockCalls }),
    });
    const unused = unusedIn(ranks, parameters);
    if (unused.length > 0) emit({ kind: "parameters.unused", step, names: unused });
    const memory = shards.flatMap(({ held }) => held ?? []);
    if (step % memoryEverySteps === 0) {
      for (const held of memory) emit({ kind: "memory.measured", step, ...held });
    }
    const buckets = shards.flatMap(({ histograms }) => histograms);
    for (const histogram of histogramsOf(step, buckets, parameters)) emit(histogram);
    inspections.answer(requests, {
      parameters: summarizeParameters(
        shards.flatMap(({ inspected }) => inspected),
        parameters,
      ),
      updates: joinUpdates(
        shards.flatMap(({ inspectedUpdates }) => inspectedUpdates),
        parameters,
      ),
      tensors: summarizeTensors(ranks.flatMap(({ recorded }) => recorded)),
      memory,
    });
    return lossNats;
  }
}

/** Joins the ranks' and shards' measurements of a step that ended `durationMs` after the one before, or an evaluation. */
function measureStep(ranks: readonly RankStepped[], shards: readonly StepUpdated[], durationMs: number) {
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

const mean = (values: readonly number[]) => sum(values) / values.length;

/** The ranks' calls of blocks as programs, if there are any. */
function sumOfCalls(ranks: readonly RankStepped[]) {
  const calls = ranks.flatMap(({ blockCalls }) => blockCalls ?? []);
  if (calls.length === 0) return undefined;
  return {
    replayed: sum(calls.map(({ replayed }) => replayed)),
    recorded: sum(calls.map(({ recorded }) => recorded)),
    recordMs: mean(calls.map(({ recordMs }) => recordMs)),
  };
}

/** The names of trained parameters without a gradient in any loss, if the ranks report gradients. */
function unusedIn(ranks: readonly RankStepped[], parameters: readonly string[]): readonly string[] {
  if (ranks.every(({ reached }) => reached === undefined)) return [];
  const used = new Set(ranks.flatMap(({ reached = [], frozen = [] }) => [...reached, ...frozen]));
  return parameters.filter((name) => !used.has(name));
}

/** The number of micro-batches that losses are means over. */
function numCountedIn(ranks: readonly RankStepped[]): number {
  const counted = ranks.filter(({ lossesNats }) => lossesNats.length > 0);
  return sum(counted.map(({ lossesNats, numCountedBatches }) => numCountedBatches ?? lossesNats.length));
}

/** The mean of each named loss; undefined where losses have no names. */
function meanLosses(ranks: readonly RankStepped[]): Readonly<Record<string, number>> | undefined {
  const named = ranks.flatMap(({ namedLosses }) => namedLosses);
  const [first] = named;
  if (first === undefined) return undefined;
  const count = numCountedIn(ranks);
  const meanOf = (name: string) => sum(named.map((losses) => losses[name] ?? Number.NaN)) / count;
  return Object.fromEntries(Object.keys(first).map((name) => [name, meanOf(name)]));
}

/** Means of the ranks' logged metrics, in the order of their first names; undefined without any. */
function meanMetrics(ranks: readonly RankStepped[]): Readonly<Record<string, number>> | undefined {
  const all = ranks.flatMap(({ metrics }) => metrics);
  if (all.length === 0) return undefined;
  const meanOf = (shares: readonly MetricSum[]) =>
    sum(shares.map((share) => share.sum)) / sum(shares.map(({ weight }) => weight));
  const byName = Map.groupBy(all, ({ name }) => name);
  return Object.fromEntries([...byName].map(([name, shares]) => [name, meanOf(shares)]));
}
