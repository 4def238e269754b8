import type { TensorRef } from "../../compute/tensor/index.ts";
import type { JobConfig, LossWeights, StepSamples } from "../../job/index.ts";
import type * as data from "../../library/data/index.ts";
import type { ActorRef } from "../../runtime/index.ts";
import type { ModuleTexts } from "../../runtime/module-texts.ts";

/** A batch and what its losses count for. */
export interface DealtBatch {
  readonly tensors: data.BatchRefs;
  /** Counts that the batch's losses are means over; for a batch of a training step, its share in the step (see `sharesOf`). */
  readonly weight: LossWeights;
  /** Where the dataset counts tokens. */
  readonly numTokens?: number | undefined;
  /** The number of labels other than -100. Left out if there are none, if the job has `weigh`, and after the run's first batches. */
  readonly numCounted?: number | undefined;
}

/** The samples of a batch, and what the batch is for. */
export interface BatchRequest extends data.SampleRange {
  /** The step that trains on it; left out for an evaluation. */
  readonly step?: StepSamples;
}

/** A request for a batch, and the reader that makes it. */
export type BatchOrder = BatchRequest & data.BatchReader;

/** The generation of ranks that a message is for; those for earlier ones are refused. */
export interface OfGeneration {
  readonly generation: number;
}

/** Answer to {@link FeederProtocol.open}. Plain data. */
export interface OpenedData {
  readonly facts: data.DatasetFacts;
  readonly splits: Readonly<Record<string, data.Split>>;
  /** Identifies the samples; `later` where computing it takes long. */
  readonly fingerprint: data.Fingerprint | "later";
  /** The files that were read, with their marks from then. */
  readonly files: data.FileMarks;
}

/** Identifies data. Plain data. */
export interface KnownData {
  readonly fingerprint: data.Fingerprint;
  readonly files: data.FileMarks;
}

/** The data that a run began with; data opened later must be the same. Plain data. */
export interface BegunData extends Pick<OpenedData, "facts" | "splits" | "files"> {
  /** Left out until it is computed. */
  readonly fingerprint?: data.Fingerprint | undefined;
  /** Whether computing the fingerprint takes long. */
  readonly isSlow: boolean;
}

/** Identifies an evaluation: the parameters after `step` updates, on one split. */
export interface EvaluationName {
  readonly step: number;
  readonly split: string;
}

/** The split that serves the batch of a live model's call. */
export const splitOf = (call: number) => `call ${call}`;

/** Predicted rows by name, sent as refs. */
export type RowRefs = Readonly<Record<string, TensorRef>>;

/** The batch of a live model's call: its samples, or a range of the dataset's. */
export type CallBatch = { readonly tensors: data.BatchRefs } | { readonly range: data.SampleRange };

/** Samples of an evaluation whose predictions are there. */
export interface EvaluatedSamples extends EvaluationName {
  readonly numSamples: number;
}

/** Predictions for an evaluation's samples from `position` on. */
export interface PredictedRows extends EvaluationName {
  readonly position: number;
  readonly rows: RowRefs;
}

/** The batch of a live model's call, put where ranks get it. */
export interface PutBatch {
  readonly call: number;
  readonly batch: CallBatch;
  /** Whether the job weighs it and the dataset counts its tokens. */
  readonly isCounted: boolean;
  /** Made ahead, before ranks ask. */
  readonly requests: readonly BatchRequest[];
}

/**
 * Opens a job's data and serves batches by position. It keeps no position of its own, so that it goes on through generations of
 * ranks, and can be restarted. It also collects a generation's predictions in an evaluation for the dataset to score.
 */
export type FeederProtocol = {
  /** `data`: left out where {@link FeederInit.data} has it. */
  open: { in: { readonly data?: DataOrder }; out: OpenedData };
  /** Calls the job's functions before a run has ranks, so that a call that never returns is found where it can be ended. */
  dryRun: { in: Record<string, never>; out: Record<string, never> };
  /** The user's modules loaded so far. */
  modules: { in: Record<string, never>; out: ModuleTexts };
  /** Answered once the samples' fingerprint is known; `files`: all files read by then. */
  fingerprint: { in: Record<string, never>; out: KnownData };
  /** A new generation has begun. Waits for its batches end with the first of its ranks that ends. */
  begin: { in: OfGeneration & { readonly ranks: readonly ActorRef<unknown>[] } };
  next: { in: BatchOrder & OfGeneration; out: DealtBatch };
  /** The batch of a live model's call, which `next` then serves as a split named `splitOf`. Requests for it wait for it. */
  put: { in: PutBatch & OfGeneration };
  /** The call is answered: drops its batch. */
  drop: { in: { readonly call: number } & OfGeneration };
  /** The rows that a call's program has predicted, joined; dropped here. */
  rows: { in: EvaluatedSamples & OfGeneration; out: { readonly rows: RowRefs } };
  predicted: { in: PredictedRows & OfGeneration; out: Record<string, never> };
  /** Scores an evaluation's rows, and then drops them. */
  score: { in: EvaluatedSamples & OfGeneration; out: data.Scores };
};

/** Arguments of a new feeder. */
export interface FeederInit {
  readonly jobUrl: string;
  /** Left out where the job is loaded first and `open` brings it. */
  readonly data?: DataOrder;
  /** The data that the run began with; left out for the first feeder to open it. */
  readonly begun?: BegunData;
}

/** The data of a job to open. */
export interface DataOrder {
  readonly config: JobConfig;
  readonly seed: number;
}
