import type { RecordedTensor } from "../../compute/nn/index.ts";
import type { BlockCalls, FlatBlock, RecordedProgram, Unrecorded } from "../../compute/parallel/index.ts";
import type { LossValues, LossWeights } from "../../job/index.ts";
import type { StateName } from "../../library/checkpoint/index.ts";
import type { GeneratedText, GenerateOptions } from "../../library/models/index.ts";
import type { ActorRef, Failure } from "../../runtime/index.ts";
import type { BatchRequest, FeederProtocol } from "./feeder.ts";
import type { RankPlan } from "./rank-plan.ts";
import type { PartPlan } from "./save-plan.ts";
import type { ShardProtocol } from "./shard.ts";
import type { SnapshotProtocol } from "./snapshot.ts";
import type { StageLinkProtocol } from "./stage.ts";

/** One step, as the conductor grants it. Plain data. */
export interface StepOrder {
  readonly step: number;
  /** Multiplies the scheduled learning rates. Default: 1. */
  readonly rateFactor?: number;
  /** Receives the state after the step. */
  readonly snapshotTo?: ActorRef<SnapshotProtocol>;
  /** Patterns of names of parameters to inspect after it. */
  readonly inspect?: readonly string[];
  /** Patterns of names of parameters whose movement by its updates is inspected. */
  readonly inspectUpdates?: readonly string[];
  /** Whether tensors recorded by the model are inspected. */
  readonly record?: boolean;
  /** Patterns of names of recorded tensors whose values are sent. */
  readonly recordValues?: readonly string[];
  /** Whether each rank reports the memory that it holds. */
  readonly ledger?: boolean;
  /** Whether histograms of parameters and gradients are made. */
  readonly histograms?: boolean;
}

/** The update that ends a live model's step. Plain data. */
export interface UpdateOrder {
  /** The rate of every optimizer, before the factors of its groups. Default: the job's schedule. */
  readonly learningRate?: number | undefined;
  /** Receives the state after the step. */
  readonly snapshotTo?: ActorRef<SnapshotProtocol>;
}

/** A call of one of the job's programs, for all replicas. Plain data. */
export interface ProgramOrder {
  readonly program: string;
  readonly args: unknown;
  /** The call's micro-batches, in the order of their samples. */
  readonly requests: readonly BatchRequest[];
}

/** Builds the model once, and computes with it on request; each answer means that the work is done. */
export type RankProtocol = StageLinkProtocol & {
  /** Builds the model without allocating memory. `peers`: every rank of the world, in order. */
  declare: { in: { plan: RankPlan; peers: readonly ActorRef<RankProtocol>[] }; out: DeclaredModel };
  /** Has the shard lay out the state of the declared model, and binds the model to it. */
  prepare: { in: Record<string, never>; out: Record<string, never> };
  /** Starts the job's training loop, or for a live model the loop that makes calls: it carries out these orders one by one. */
  train: { in: { readonly isLive: boolean } };
  /** Answered by the loop before the job's code runs. Orders that take another way than `train` are sent after it. */
  ready: { in: Record<string, never>; out: Record<string, never> };
  /** One optimizer step; parameters of step s have seen s updates. */
  step: { in: StepOrder; out: RankStepped | LoopLeft };
  /**
   * Forward and backward of a program's loss. Each replica takes an equal number of consecutive micro-batches. The first of a
   * step begins it; with `update` it also ends it.
   */
  accumulate: {
    in: ProgramOrder & {
      readonly begin: StepOrder;
      /** Its number of samples as a multiple of that of the step's first batch. */
      readonly weight: number;
      readonly update?: UpdateOrder;
      /** The micro-batches of the accumulation that follows, if the script has called it already. */
      readonly ahead?: readonly BatchRequest[];
    };
    out: RankStepped | RankAccumulated | NotMade;
  };
  /** One optimizer step of everything accumulated since the last. */
  update: { in: UpdateOrder; out: RankStepped | NotMade };
  /** Sends the rows of a program to the feeder, without gradients. The replicas take the micro-batches in turn. */
  call: { in: ProgramOrder & { readonly step: number }; out: Record<string, never> | NotMade };
  /** Texts that the model of `step` writes; each replica takes consecutive prompts. Empty except on one rank of each. */
  generate: {
    in: {
      readonly step: number;
      readonly call: number;
      readonly prompts: readonly (string | readonly number[])[];
      readonly options: GenerateOptions;
    };
    out: { readonly texts: readonly GeneratedText[] } | NotMade;
  };
  /** Held-out loss of the parameters of `step` on `requests`, this rank's share. */
  evaluate: { in: { step: number; requests: readonly BatchRequest[] }; out: RankEvaluated };
  /** A rank goes on whose program has thrown. Where it had accumulated, it has carried out no order since then. */
  goOn: { in: Record<string, never> };
  /** Output of the job's `sample` with the parameters of `step`; every rank computes it, since all must gather. */
  sample: { in: { step: number }; out: { text: string } };
  /** The step after which the run ends since a rank's code asked it to; sent once each rank has answered the asking step. */
  verdict: { in: { step: number } };
  /** Stays unanswered until the rank's code calls `save()`, which then blocks until `heard`. */
  wanted: { in: Record<string, never>; out: WantedSave };
  /** The save has begun at every shard: no update overwrites the state before it is copied. */
  heard: { in: Record<string, never> };
  /** No step follows; answered once the loop has returned. */
  end: { in: Record<string, never>; out: Record<string, never> };
};

/** Arguments of a new rank. */
export interface RankInit {
  readonly rank: number;
  readonly shard: ActorRef<ShardProtocol>;
  readonly feeder: ActorRef<FeederProtocol>;
}

/** The model, as built by one rank. Plain data. */
export interface DeclaredModel {
  /** Blocks that this rank and its shard hold. */
  readonly layouts: readonly FlatBlock[];
  /** Parts that this rank's shard sends in a save. */
  readonly saved: readonly PartPlan[];
  /** Names of all parameters of the model, in order. */
  readonly parameters: readonly string[];
  readonly numParameters: number;
  /** config.json for `transformers`, where the model has one. */
  readonly modelConfig: Readonly<Record<string, unknown>> | undefined;
}

/** A save that a rank's code asks for. */
export interface WantedSave {
  /** Number of updates made to the state. */
  readonly step: number;
  /** Its name, if it has one. */
  readonly named?: StateName | undefined;
}

/** Answer of a rank whose loop has returned: it makes none of the steps that are still granted. */
export interface LoopLeft {
  /** Number of steps that it has made. */
  readonly left: number;
}

/**
 * Answer of a rank that has made nothing of an order: its program has thrown before anything changed, or one has before, and the
 * rank waits for `goOn`.
 */
export interface NotMade {
  readonly notMade: true;
  /** The error of the program, in the order that it was called by. */
  readonly failure?: Failure;
}

/** Losses of one rank in a live model's step. */
export interface RankAccumulated {
  /** As of {@link RankStepped}, of the step's micro-batches so far. */
  readonly lossesNats: readonly number[];
  readonly namedLosses: readonly Readonly<Record<string, number>>[];
}

/** One rank's share of a step. */
export interface RankStepped extends RankAccumulated {
  /**
   * Loss of each micro-batch times its share in the step, in order: their mean over all ranks is the step's loss. Empty
   * except on the rank of each replica that computes the loss.
   */
  readonly lossesNats: readonly number[];
  /** The same losses, from a rank that splits layers with the reporting rank: both must have the same bits. */
  readonly witnessNats?: readonly number[];
  /** Number of labels that count in each of those micro-batches, if they were counted. */
  readonly numCounted?: readonly number[];
  /** Named losses of those micro-batches, where losses have names. */
  readonly namedLosses: readonly Readonly<Record<string, number>>[];
  /** The number of those micro-batches, each times its weight, if that is another: the step's loss is the mean over it. */
  readonly numCountedBatches?: number;
  readonly learningRate: number;
  /** In the micro-batches whose losses it reports. */
  readonly numSamples: number;
  /** Where the dataset counts them. */
  readonly numTokens: number | undefined;
  readonly durationMs: number;
  readonly waits: Waits;
  /** Names of parameters that the step does not train; left out where they are those of the step before. */
  readonly frozen?: readonly string[];
  /** Names of parameters with a gradient on this rank; in a run's first step only. */
  readonly reached?: readonly string[];
  /** Parts that this rank's shard sends in saves from this step on, if there are more than before. */
  readonly saved?: readonly PartPlan[];
  /** Tensors recorded by the model, where they are inspected. */
  readonly recorded: readonly RecordedTensor[];
  /** Metrics logged by the rank's code, on ranks that report their loss. */
  readonly metrics: readonly MetricSum[];
  /** Blocks that were to be recorded as programs and were not, since the step before. */
  readonly unrecorded?: readonly Unrecorded[];
  /** Programs that blocks are replayed by, since the step before. */
  readonly programs?: readonly RecordedProgram[];
  /** Calls of blocks that were replayed or recorded since the step before, if blocks are programs. */
  readonly blockCalls?: BlockCalls;
  /** Whether the rank's code asks to end the run after this step; the rank then waits for the `verdict`. */
  readonly wantsStop?: boolean;
}

/** One rank's share of a metric, over its micro-batches. */
export interface MetricSum {
  readonly name: string;
  /** Sum of its values, each times its micro-batch's share. */
  readonly sum: number;
  /** Sum of those shares. */
  readonly weight: number;
}

/** Waiting time of one rank in one step, in milliseconds. */
export interface Waits {
  /** While the computation waited for parameters. */
  readonly exposedMs: number;
  /** While gathers were in flight, hidden behind the computation or not. */
  readonly gatherMs: number;
  /** While the computation waited for data. */
  readonly dataMs: number;
}

/** One rank's share of an evaluation. */
export interface RankEvaluated {
  /** One for each batch of this replica, in order; empty except on the rank that computes the loss. */
  readonly batches: readonly EvaluatedBatch[];
}

/** Held-out losses of one batch. */
export interface EvaluatedBatch {
  readonly losses: LossValues;
  /** Counts that the losses are means over. */
  readonly weight: LossWeights;
  readonly numSamples: number;
  /** Where the dataset counts them. */
  readonly numTokens: number | undefined;
}
