import { type Layout, layoutProblems } from "../../compute/parallel/index.ts";
import type { Cluster } from "./cost/cluster.ts";
import { type Estimate, estimateStep } from "./cost/estimate.ts";
import type { ModelFacts } from "./cost/model-facts.ts";
import { largestMemory, type PlanOptions, planMemory, type RankMemory } from "./cost/plan-memory.ts";

/** A layout that fits, with its memory and time. */
export interface Suggestion {
  readonly layout: Layout;
  readonly recompute: boolean;
  /** Memory of the rank that needs most. */
  readonly memory: RankMemory;
  readonly estimate: Estimate;
}

/** Options of {@link suggestLayouts}. */
export interface SuggestOptions extends PlanOptions {
  readonly cluster: Cluster;
  readonly ranks: number;
  readonly batchSize: number;
  /** Memory limit of a rank. Default: the cluster's. */
  readonly memoryBytes?: number;
}

/**
 * Finds layouts that fit in memory, fastest first: of every split of the ranks into stages, replicas and
 * tensor-parallel neighbours the fastest that fits, of equally fast ones the simplest. Tries every ZeRO level and
 * power-of-two number of micro-batches, and recomputation where a layout does not fit without it. Tensor parallelism
 * stays within a node, where its collectives are fast enough.
 */
export function suggestLayouts(facts: ModelFacts, options: SuggestOptions): Suggestion[] {
  const limit = options.memoryBytes ?? options.cluster.memoryBytes;
  const suggestions: Suggestion[] = [];
  for (const layout of candidates(facts, options)) {
    // Recomputation costs time: only where it is needed to fit.
    for (const recompute of options.recompute === undefined ? [false, true] : [options.recompute]) {
      const assumed = { ...options, recompute };
      const memory = largestMemory(planMemory(facts, layout, assumed));
      if (memory.peakBytes > limit) continue;
      suggestions.push({ layout, recompute, memory, estimate: estimateStep(facts, layout, assumed) });
      break;
    }
  }
  suggestions.sort((a, b) => a.estimate.stepS - b.estimate.stepS || plainness(a) - plainness(b));
  const splits = new Set<string>();
  return suggestions.filter(({ layout: { tp, pp } }) => {
    const split = `${tp} ${pp}`;
    return !splits.has(split) && splits.add(split);
  });
}

function plainness({ layout, recompute }: Suggestion): number {
  return layout.tp + layout.pp + layout.zero + Number(recompute);
}

function* candidates(facts: ModelFacts, options: SuggestOptions): Generator<Layout> {
  const { ranks, batchSize, cluster, offloadParameters } = options;
  for (const tp of divisorsOf(ranks).filter((size) => size <= cluster.ranksPerNode)) {
    for (const pp of divisorsOf(ranks / tp)) {
      const dp = ranks / (tp * pp);
      for (const accumulation of powersOfTwo(batchSize / dp)) {
        // Only level 3 offloads parameters; with one replica there is nothing else to split.
        for (const zero of offloadParameters ? [3] : dp === 1 ? [0] : [0, 1, 2, 3]) {
          const split = { ranks, tp, pp, ep: 1, zero, batchSize, accumulation };
          const layout: Layout = { ...split, schedule: "1f1b", chunks: 1 };
          if (layoutProblems(facts.layout, layout).length === 0) yield layout;
        }
      }
    }
  }
}

function divisorsOf(value: number): number[] {
  return Array.from({ length: value }, (_, index) => index + 1).filter((divisor) => value % divisor === 0);
}

function powersOfTwo(highest: number): number[] {
  const powers: number[] = [];
  for (let power = 1; power <= highest; power *= 2) powers.push(power);
  return powers;
}
