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

/** Options of a simulation, besides model and layout. */
export interface SimulationOptions extends PlanOptions {
  readonly cluster: Cluster;
  /** Whether updates wait for the gradient's norm. Default: true. */
  readonly clip?: boolean;
  /** Number of steps, at least 3; the last but one is measured. The first records what the others prefetch. Default: 4. */
  readonly numSteps?: number;
  /** Added to every gather and reduction, in seconds. */
  readonly delayPerCollectiveS?: number;
  /** Added to every block's update, in seconds. */
  readonly delayPerUpdateS?: number;
  /** A rank whose computation takes longer by a factor. */
  readonly straggler?: { readonly rank: number; readonly factor: number };
  /** Ranks whose timeline is kept. Default: none. */
  readonly timelineOf?: readonly number[];
}

/** A section of a rank's time. */
export interface Span {
  readonly rank: number;
  readonly lane: "compute" | "communication" | "update";
  /** The operation and its flat block: `forward 3`, `gather 2`. */
  readonly name: string;
  readonly step: number;
  readonly beginS: number;
  readonly endS: number;
}

/** A stage's program and costs, the same for all of its ranks. */
export interface StagePlan {
  readonly share: StageShare;
  readonly costs: StageCosts;
  readonly program: readonly (readonly Operation[])[];
}

/** A rank's seconds in one step. */
export interface StepTimes {
  computeS: number;
  /** Tensor-parallel collectives within a block, and waiting for the neighbours. */
  tensorParallelS: number;
  /** While the computation waited for parameters. */
  exposedS: number;
  /** While the computation waited for a neighbouring stage. */
  bubbleS: number;
  /** Gathers and reductions, hidden or not. */
  communicationS: number;
  updateS: number;
}

/** One simulated rank and its shard: their progress, and when their lanes are free. */
export interface SimulatedRank {
  readonly rank: number;
  readonly plan: StagePlan;
  readonly dpGroup: readonly SimulatedRank[];
  readonly tpGroup: readonly SimulatedRank[];
  step: number;
  /** Index of the next operation. */
  next: number;
  /** The reason why it waits; undefined while it computes. */
  waitsFor: string | undefined;
  waitsSinceS: number;
  /** Data that has arrived: gathered blocks of the present step, and messages of its neighbours. */
  readonly inbox: Occurrences;
  communicationFreeS: number;
  updateFreeS: number;
  numReduced: number;
  /** Number of updates made, by block. */
  readonly updates: number[];
  /** Times by step. */
  readonly times: StepTimes[];
  /** Start of each step; one more for the end of the last. */
  readonly stepBeganS: number[];
}

/** State shared by the parts of a simulation. */
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

  /** Records a section of a rank's time, if its timeline is wanted. */
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
