import type { TensorRef } from "../../compute/tensor/index.ts";
import type { JobConfig, LossWeights, StepSamples } from "../../job/index.ts";
import type {
  BatchReader,
  BatchRefs,
  DatasetFacts,
  FileMarks,
  Fingerprint,
  SampleRange,
  Scores,
  Split,
} from "../../library/data/index.ts";
import type { ModuleTexts } from "../../runtime/module-texts.ts";

/** A batch as it is dealt, and what it counts. */
export interface DealtBatch {
  readonly tensors: BatchRefs;
  /** What its losses are means over; of a step's batch its share in the step, as `sharesOf` has it. */
  readonly weight: LossWeights;
  /** Where the dataset counts them. */
  readonly numTokens?: number | undefined;
  /** The number of labels other than -100. Left out if there are none, if the job has `weigh`, and after the run's first batches. */
  readonly numCounted?: number | undefined;
}

/** Which samples a batch is made of, and what for. */
export interface BatchRequest extends SampleRange {
  /** The step that it is a part of, where it is trained on. */
  readonly step?: StepSamples;
}

/** A batch as one of its readers asks for it. */
export type BatchOrder = BatchRequest & BatchReader;

/** What the feeder answers to {@link FeederProtocol.open}. Plain data. */
export interface OpenedData {
  readonly facts: DatasetFacts;
  readonly splits: Readonly<Record<string, Split>>;
  /** What tells its samples from others, where that is at hand; `later` where it takes its time. */
  readonly fingerprint: Fingerprint | "later";
  /** The files that were read, as they were. */
  readonly files: FileMarks;
}

/** Identifies data, to tell it from other data. Plain data. */
export interface KnownData {
  readonly fingerprint: Fingerprint;
  readonly files: FileMarks;
}

/** The data that a run began with: what is opened again must be the same. Plain data. */
export interface BegunData extends Pick<OpenedData, "facts" | "splits" | "files"> {
  /** Left out until it is known. */
  readonly fingerprint?: Fingerprint | undefined;
  /** Whether the fingerprint takes long. */
  readonly isSlow: boolean;
}

/** An evaluation: of what the parameters of a step make of a part of the data. */
export interface EvaluationName {
  readonly step: number;
  readonly split: string;
}

/** Predicted rows on their way, by name. */
export type RowRefs = Readonly<Record<string, TensorRef>>;

/**
 * The feeder opens a job's data and serves batches by position, of which it keeps no place, so that it can be restarted. It
 * gathers what the model predicts in an evaluation, for the dataset to score; that is lost with it.
 */
export type FeederProtocol = {
  /** `data`: where the feeder was not born with it. */
  open: { in: { readonly data?: DataOrder }; out: OpenedData };
  /** Calls what the job declares before a run has ranks, so that a call that never ends is found where it can be ended. */
  rehearse: { in: Record<string, never>; out: Record<string, never> };
  /** The user's modules that it has loaded so far. */
  modules: { in: Record<string, never>; out: ModuleTexts };
  /** Answered with the fingerprint of the samples once it is known, and with all files that have been read by then. */
  fingerprint: { in: Record<string, never>; out: KnownData };
  next: { in: BatchOrder; out: DealtBatch };
  /** Rows that the model predicts of an evaluation's samples `position` on. */
  predicted: {
    in: EvaluationName & { readonly position: number; readonly rows: RowRefs };
    out: Record<string, never>;
  };
  /** Scores the rows of all `numSamples` samples of an evaluation, which it then forgets. */
  score: { in: EvaluationName & { readonly numSamples: number }; out: Scores };
};

/** What a feeder is born with. */
export interface FeederInit {
  readonly jobUrl: string;
  /** Left out where the job is to be loaded first, and `open` says it. */
  readonly data?: DataOrder;
  /** The data that the run began with. Left out where this feeder is the first to open it. */
  readonly begun?: BegunData;
}

/** Which data of a job is to be opened. */
export interface DataOrder {
  readonly config: JobConfig;
  readonly seed: number;
}
