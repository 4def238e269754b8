import type { Layout } from "../../../compute/parallel/index.ts";
import { byteScheme } from "./byte-scheme.ts";
import { allReduceSeconds, type Cluster, type Link, linkOf, ringSeconds, sendSeconds } from "./cluster.ts";
import type { ModelFacts } from "./model-facts.ts";
import { type PlanOptions, traceOptions } from "./plan-memory.ts";
import { ROOT_BLOCK, type StageShare, shareOfStages } from "./rank-share.ts";
import { type BlockCost, type StageCosts, stageCosts } from "./stage-costs.ts";
import { sum } from "./sum.ts";

/** Estimated time of a step by a formula, in seconds. */
export interface Estimate {
  readonly stepS: number;
  /** Time of the costliest stage, with its tensor-parallel collectives. */
  readonly computeS: number;
  readonly bubbleS: number;
  /** Time of gathers and reductions that the computation is too short to hide. */
  readonly exposedS: number;
}

/**
 * Estimates a step's time without simulating its schedule: the costliest stage's micro-batches, the pipeline's bubble,
 * and the communication that exceeds the concurrent computation. Meant for comparing many layouts; `simulate` is exact.
 * @param layout - checked
 */
export function estimateStep(
  facts: ModelFacts,
  layout: Layout,
  options: PlanOptions & { readonly cluster: Cluster },
): Estimate {
  const { pp, chunks, accumulation } = layout;
  const scheme = byteScheme(options.precision, options.stateTensors, layout.accumulation);
  const trace = facts.trace(traceOptions(layout, options));
  const stages = shareOfStages(facts, layout).map((share) => ({
    share,
    costs: stageCosts(trace, layout, share, options.cluster, scheme),
  }));
  const groups = groupLinks(options.cluster, layout);
  const transferS = pp === 1 ? 0 : 2 * sendSeconds(groups.pp, stages[0]?.costs.boundaryBytes ?? 0);
  const secondsOf = ({ share, costs }: (typeof stages)[number]) =>
    sum(callsOf(share, costs).map(({ forwardS, backwardS }) => forwardS + backwardS));
  const microBatchS = Math.max(...stages.map(secondsOf)) + transferS;
  const computeS = microBatchS * accumulation;
  const bubbleS = (microBatchS * (pp - 1)) / chunks;
  const exposedS = Math.max(
    ...stages.map(({ share, costs }) => exposedSeconds(share, costs, groups.dp, layout)),
  );
  return { stepS: computeS + bubbleS + exposedS, computeS, bubbleS, exposedS };
}

/** The costs of a stage's computation: its calls of blocks, and the model's end. */
function callsOf({ chunks }: StageShare, { blocks }: StageCosts): BlockCost[] {
  return [ROOT_BLOCK, ...chunks.flat()].map((block) => blocks[block] as BlockCost);
}

/** Communication of the data-parallel group that computation does not hide, including the first block's, which nothing hides. */
function exposedSeconds(share: StageShare, costs: StageCosts, link: Link, layout: Layout): number {
  const numReplicas = layout.ranks / (layout.tp * layout.pp);
  const reduce = layout.zero >= 2 ? ringSeconds : allReduceSeconds;
  const reduceS = sum(costs.blocks.map(({ gradientBytes }) => reduce(link, numReplicas, gradientBytes)));
  const gatherS = sum(costs.blocks.map(({ gatheredBytes }) => ringSeconds(link, numReplicas, gatheredBytes)));
  const updateS = sum(costs.blocks.map((block) => block.updateS));
  const forwardS = sum(callsOf(share, costs).map((block) => block.forwardS));
  const backwardS = sum(callsOf(share, costs).map((block) => block.backwardS));
  const { accumulation } = layout;
  const first = (seconds: number) => seconds / share.layouts.length;
  if (layout.zero < 3) {
    const whole = layout.zero === 0 ? 0 : gatherS;
    const beforeForward = Math.max(first(updateS + whole), updateS + whole - forwardS);
    return Math.max(first(reduceS), reduceS - backwardS) + beforeForward;
  }
  const perForward = Math.max(0, gatherS - forwardS);
  const lastBackward = Math.max(0, gatherS + reduceS - backwardS);
  const otherBackward = Math.max(0, gatherS - backwardS);
  const startS = first(gatherS + reduceS + updateS);
  return accumulation * perForward + (accumulation - 1) * otherBackward + lastBackward + startS;
}

/** Links of the groups of rank 0. */
function groupLinks(cluster: Cluster, { ranks, tp, pp }: Layout): { readonly dp: Link; readonly pp: Link } {
  const numReplicas = ranks / (tp * pp);
  const dp = Array.from({ length: numReplicas }, (_, index) => index * tp);
  return { dp: linkOf(cluster, dp), pp: linkOf(cluster, [0, tp * numReplicas]) };
}
