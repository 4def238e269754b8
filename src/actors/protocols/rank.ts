import type { RecordedTensor } from "../../compute/nn/index.ts";
import type { FlatBlock } from "../../compute/parallel/index.ts";
import type { LossValues, LossWeights } from "../../job/index.ts";
import type { StateName } from "../../library/checkpoint/index.ts";
import type { ActorRef } from "../../runtime/index.ts";
import type { BatchRequest, FeederProtocol } from "./feeder.ts";
import type { RankPlan } from "./rank-plan.ts";
import type { PartPlan } from "./save-plan.ts";
import type { ShardProtocol } from "./shard.ts";
import type { SnapshotProtocol } from "./snapshot.ts";
import type { StageLinkProtocol } from "./stage.ts";

/** One step, as the conductor grants it. Plain data. */
export interface StepOrder {
  readonly step: number;
  /** The factor of scheduled learning rates. Default: 1. */
  readonly rateFactor?: number;
  /** Who wants the state that follows it. */
  readonly snapshotTo?: ActorRef<SnapshotProtocol>;
  /** Patterns of the parameters that are looked at after it. */
  readonly inspect?: readonly string[];
  /** The same, of those whose movement by its updates is looked at. */
  readonly inspectUpdates?: readonly string[];
  /** Whether tensors that the model records are looked at. */
  readonly record?: boolean;
  /** Patterns of those whose numbers are wanted. */
  readonly recordValues?: readonly string[];
  /** Whether the memory that each rank holds is looked at. */
  readonly ledger?: boolean;
  /** Whether the values of parameters and gradients are sorted into buckets. */
  readonly histograms?: boolean;
}

/** A rank builds its model once, and computes with it when it is asked to; it answers when that is done. */
export type RankProtocol = StageLinkProtocol & {
  /** Builds the model, without memory. `peers`: every rank of the world, in order. */
  declare: { in: { plan: RankPlan; peers: readonly ActorRef<RankProtocol>[] }; out: DeclaredModel };
  /** Has the shard lay out the state of what was declared, and binds the model to it. */
  prepare: { in: Record<string, never>; out: Record<string, never> };
  /** Begins the job's training loop, which takes the orders below, one after the other. */
  train: { in: Record<string, never> };
  /** One optimizer step; parameters of step s have seen s updates. */
  step: { in: StepOrder; out: RankStepped | LoopLeft };
  /** Held-out loss of the parameters of `step`: this rank's share of `requests`. */
  evaluate: { in: { step: number; requests: readonly BatchRequest[] }; out: RankEvaluated };
  /** What the job's `sample` makes of the parameters of `step`; every rank computes it, so that all gather alike. */
  sample: { in: { step: number }; out: { text: string } };
  /** The step after which the run ends, if a rank's code has asked to stop it: sent to all ranks once each has answered the step of that call. */
  verdict: { in: { step: number } };
  /** A standing question to every rank: answered when its code calls `save()`, which then blocks until `heard`. */
  wanted: { in: Record<string, never>; out: WantedSave };
  /** That save has begun at every shard: nothing overwrites the state uncopied. */
  heard: { in: Record<string, never> };
  /** No step follows: answered once the loop has returned. */
  end: { in: Record<string, never>; out: Record<string, never> };
};

/** What a rank is born with. */
export interface RankInit {
  readonly rank: number;
  readonly shard: ActorRef<ShardProtocol>;
  readonly feeder: ActorRef<FeederProtocol>;
}

/** What the conductor learns of the model once a rank has built it. Plain data. */
export interface DeclaredModel {
  /** What this rank and its shard hold. */
  readonly layouts: readonly FlatBlock[];
  /** What this rank's shard sends when the state is saved. */
  readonly saved: readonly PartPlan[];
  /** Names of the whole model's parameters, in order. */
  readonly parameters: readonly string[];
  readonly numParameters: number;
  /** config.json of a folder that `transformers` reads, where the model has one. */
  readonly modelConfig: Readonly<Record<string, unknown>> | undefined;
}

/** A state that a rank's code wants saved. */
export interface WantedSave {
  /** The number of updates made to it. */
  readonly step: number;
  /** Its name, if it has one. */
  readonly named?: StateName | undefined;
}

/** The answer of a rank whose loop has returned: it makes none of the steps that are still granted. */
export interface LoopLeft {
  /** Steps that it has made in all. */
  readonly left: number;
}

/** One rank's share of a step. */
export interface RankStepped {
  /**
   * Loss of each micro-batch times its share in the step, in order, so that their mean over all ranks is the step's; none but
   * where the loss is computed, once for each replica.
   */
  readonly lossesNats: readonly number[];
  /** The same losses of a rank that splits layers with the rank that reports them: both must have the same bits. */
  readonly witnessNats?: readonly number[];
  /** The number of labels that count in each of those micro-batches, if they were counted. */
  readonly numCounted?: readonly number[];
  /** The same by name, where losses have names. */
  readonly namedLosses: readonly Readonly<Record<string, number>>[];
  readonly learningRate: number;
  /** Of the micro-batches whose losses it tells. */
  readonly numSamples: number;
  /** Where the dataset counts them. */
  readonly numTokens: number | undefined;
  readonly durationMs: number;
  readonly waits: Waits;
  /** Names of the model's parameters that the step does not train; left out where they are those of the step before. */
  readonly frozen?: readonly string[];
  /** Names of the parameters with a gradient on this rank, in a run's first step only. */
  readonly reached?: readonly string[];
  /** What this rank's shard sends from this step on when the state is saved, where that has become more. */
  readonly saved?: readonly PartPlan[];
  /** Tensors that the model records, where they are looked at. */
  readonly recorded: readonly RecordedTensor[];
  /** What the rank's code has logged, where it tells its loss. */
  readonly metrics: readonly MetricSum[];
  /** Whether the rank's code wants the run to end after this step; the rank waits for the `verdict` then. */
  readonly wantsStop?: boolean;
}

/** One rank's share of a metric, over its micro-batches. */
export interface MetricSum {
  readonly name: string;
  /** Of its values, each times its micro-batch's share. */
  readonly sum: number;
  /** Of those shares. */
  readonly weight: number;
}

/** What a rank waited for in one step, in milliseconds. */
export interface Waits {
  /** The computation stood still for parameters. */
  readonly exposedMs: number;
  /** Gathers were under way, hidden behind the computation or not. */
  readonly gatherMs: number;
  /** The computation stood still for data. */
  readonly dataMs: number;
}

/** One rank's share of an evaluation. */
export interface RankEvaluated {
  /** Each batch of this replica, in order; none but where the loss is computed. */
  readonly batches: readonly EvaluatedBatch[];
}

/** Held-out losses of one batch. */
export interface EvaluatedBatch {
  readonly losses: LossValues;
  /** What they are means over. */
  readonly weight: LossWeights;
  readonly numSamples: number;
  /** Where the dataset counts them. */
  readonly numTokens: number | undefined;
}
