import { type Layout, Mesh } from "../../../compute/parallel/index.ts";
import { byteScheme } from "../cost/byte-scheme.ts";
import { type Cluster, type Link, linkOf } from "../cost/cluster.ts";
import type { ModelFacts } from "../cost/model-facts.ts";
import { DEFAULT_PREFETCH_BYTES, type PlanOptions, traceOptions } from "../cost/plan-memory.ts";
import { ROOT_BLOCK, type StageShare, shareOfStages } from "../cost/rank-share.ts";
import { type StageCosts, stageCosts } from "../cost/stage-costs.ts";
import { HappensBefore } from "./happens-before.ts";
import { Occurrences } from "./occurrences.ts";
import { type Operation, rankProgram } from "./rank-program.ts";
import { VirtualTime } from "./virtual-time.ts";

/** What a simulation assumes beside model and layout. */
export interface SimulationOptions extends PlanOptions {
  readonly cluster: Cluster;
  /** Whether the gradient's norm is awaited before anything is updated. True */
  readonly clip?: boolean;
  /** Steps in all, at least 3; the last but one is told. The first records what the others prefetch. 4 */
  readonly numSteps?: number;
  /** Added to every gather and reduction, in seconds. */
  readonly delayPerCollectiveS?: number;
  /** Added to every block's update, in seconds. */
  readonly delayPerUpdateS?: number;
  /** A rank whose computation takes longer by a factor. */
  readonly straggler?: { readonly rank: number; readonly factor: number };
  /** Ranks whose timeline is kept; none unless told. */
  readonly timelineOf?: readonly number[];
}

/** A stretch of a rank's time. */
export interface Span {
  readonly rank: number;
  readonly lane: "compute" | "communication" | "update";
  /** What, and of which flat block: `forward 3`, `gather 2`. */
  readonly name: string;
  readonly step: number;
  readonly beginS: number;
  readonly endS: number;
}

/** A stage's program and prices, the same for all of its ranks. */
export interface StagePlan {
  readonly share: StageShare;
  readonly costs: StageCosts;
  readonly program: readonly (readonly Operation[])[];
}

/** Where a rank's seconds of one step went. */
export interface StepTimes {
  computeS: number;
  /** Tensor-parallel collectives within a block, and waiting for the neighbours. */
  tensorParallelS: number;
  /** The computation stood still for parameters. */
  exposedS: number;
  /** The computation stood still for a neighbouring stage. */
  bubbleS: number;
  /** Gathers and reductions, hidden or not. */
  communicationS: number;
  updateS: number;
}

/** One simulated rank and its shard: where they are, and when their lanes are free. */
export interface SimulatedRank {
  readonly rank: number;
  readonly plan: StagePlan;
  readonly dpGroup: readonly SimulatedRank[];
  readonly tpGroup: readonly SimulatedRank[];
  step: number;
  /** The operation that comes next. */
  next: number;
  /** What it waits for; undefined while it computes. */
  waitsFor: string | undefined;
  waitsSinceS: number;
  /** What has come to it: whole blocks of the present step, and what its neighbours sent. */
  readonly inbox: Occurrences;
  communicationFreeS: number;
  updateFreeS: number;
  numReduced: number;
  /** Updates made, by block. */
  readonly updates: number[];
  /** By step. */
  readonly times: StepTimes[];
  /** By step, when it began; one more, when the last has ended. */
  readonly stepBeganS: number[];
}

/** Everything that the parts of a simulation share. */
export class SimulatedWorld {
  readonly facts: ModelFacts;
  readonly layout: Layout;
  readonly options: SimulationOptions;
  readonly mesh: Mesh;
  readonly time = new VirtualTime();
  readonly occurrences = new Occurrences();
  readonly order: HappensBefore;
  readonly ranks: readonly SimulatedRank[];
  readonly timeline: Span[] = [];
  readonly #timelineOf: ReadonlySet<number>;

  constructor(facts: ModelFacts, layout: Layout, options: SimulationOptions) {
    const { pp, tp, ranks } = layout;
    this.facts = facts;
    this.layout = layout;
    this.options = options;
    this.mesh = new Mesh({ pp, tp, dp: ranks / (pp * tp) });
    this.#timelineOf = new Set(options.timelineOf);
    this.ranks = this.#makeRanks();
    this.order = new HappensBefore((rank, block) => {
      const { ends = [], chunks = [] } = this.ranks[rank]?.plan.share ?? {};
      const numCalls = chunks.flat().filter((called) => called === block).length;
      return layout.accumulation * (block === ROOT_BLOCK ? ends.length : numCalls);
    });
  }

  /** The flat blocks that are trained on a rank: a middle stage has an empty root. */
  trainedBlocks({ plan }: SimulatedRank): readonly number[] {
    const blocks = plan.share.layouts.map(({ index }) => index);
    return plan.share.ends.length === 0 ? blocks.slice(1) : blocks;
  }

  /** The slowest hop between ranks. */
  link(ranks: readonly SimulatedRank[]): Link {
    return linkOf(
      this.options.cluster,
      ranks.map(({ rank }) => rank),
    );
  }

  /** Notes a stretch of time of a rank, where its timeline is wanted. */
  note({ rank }: SimulatedRank, span: () => Omit<Span, "rank">): void {
    if (this.#timelineOf.has(rank)) this.timeline.push({ rank, ...span() });
  }

  #makeRanks(): SimulatedRank[] {
    const stages = shareOfStages(this.facts, this.layout).map((share) => this.#planStage(share));
    const ranks: SimulatedRank[] = [];
    const groups = { dp: [] as SimulatedRank[][], tp: [] as SimulatedRank[][] };
    for (const axis of ["dp", "tp"] as const) {
      for (const group of this.mesh.groups(axis)) {
        const members: SimulatedRank[] = [];
        for (const rank of group) groups[axis][rank] = members;
      }
    }
    for (const rank of this.mesh.ranks) {
      const plan = stages[this.mesh.placeOf(rank).pp] as StagePlan;
      const dpGroup = groups.dp[rank] as SimulatedRank[];
      const tpGroup = groups.tp[rank] as SimulatedRank[];
      const made = newRank(rank, plan, dpGroup, tpGroup);
      dpGroup.push(made);
      tpGroup.push(made);
      ranks.push(made);
    }
    return ranks;
  }

  #planStage(share: StageShare): StagePlan {
    const { cluster, precision, stateTensors, prefetchBytes, numSteps } = this.options;
    const scheme = byteScheme(precision, stateTensors);
    const trace = this.facts.trace(traceOptions(this.layout, this.options));
    const costs = stageCosts(trace, this.layout, share, cluster, scheme);
    const program = rankProgram({
      layout: this.layout,
      share,
      gatheredBytes: costs.blocks.map(({ gatheredBytes }) => gatheredBytes),
      prefetchBytes: prefetchBytes ?? DEFAULT_PREFETCH_BYTES,
      numSteps: Math.max(3, numSteps ?? 4),
    });
    return { share, costs, program };
  }
}

function newRank(
  rank: number,
  plan: StagePlan,
  dpGroup: readonly SimulatedRank[],
  tpGroup: readonly SimulatedRank[],
): SimulatedRank {
  return {
    rank,
    plan,
    dpGroup,
    tpGroup,
    step: 0,
    next: 0,
    waitsFor: undefined,
    waitsSinceS: 0,
    inbox: new Occurrences(),
    communicationFreeS: 0,
    updateFreeS: 0,
    numReduced: 0,
    updates: plan.share.layouts.map(() => 0),
    times: plan.program.map(() => ({
      computeS: 0,
      tensorParallelS: 0,
      exposedS: 0,
      bubbleS: 0,
      communicationS: 0,
      updateS: 0,
    })),
    stepBeganS: [0],
  };
}
