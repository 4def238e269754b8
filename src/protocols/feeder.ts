import type { DatasetFacts, Scores } from "../data/index.ts";
import type { JobConfig, LossWeights, StepSamples } from "../job/index.ts";
import type { TensorRef } from "../tensor/index.ts";

/** One batch on its way: named tensors, owned by whoever attaches them. */
export type BatchRefs = Readonly<Record<string, TensorRef>>;

/** A batch as it is dealt, and what it counts. */
export interface DealtBatch {
  readonly tensors: BatchRefs;
  /** What its losses are means over; of a step's batch its share in the step, as `sharesOf` has it. */
  readonly weight: LossWeights;
  /** Where the dataset counts them. */
  readonly numTokens?: number | undefined;
}

/** Which samples a batch is made of. */
export interface BatchRequest {
  readonly split: "train" | "validation";
  /** First sample: of the run, counted over all ranks and micro-batches, or of the held-out part. */
  readonly position: number;
  readonly numSamples: number;
  /** The step that it is a part of, where it is trained on. */
  readonly step?: StepSamples;
}

/** What the feeder answers to {@link FeederProtocol.open}. Plain data. */
export interface OpenedData {
  readonly facts: DatasetFacts;
  readonly numValidationSamples: number;
}

/** An evaluation: of what the parameters of a step make of a part of the data. */
export interface EvaluationName {
  readonly step: number;
  readonly split: string;
}

/**
 * The feeder opens a job's data and serves batches by position, of which it keeps no place, so that it can be restarted. It
 * gathers what the model predicts in an evaluation, for the dataset to score; that is lost with it.
 */
export type FeederProtocol = {
  open: { in: Record<string, never>; out: OpenedData };
  /** `reader`: whose the tensors are, by the name of {@link recipientName}. */
  next: { in: BatchRequest & { readonly reader: string }; out: DealtBatch };
  /** Rows that the model predicts of an evaluation's samples `position` on. */
  predicted: {
    in: EvaluationName & { readonly position: number; readonly rows: BatchRefs };
    out: Record<string, never>;
  };
  /** Scores the rows of all `numSamples` samples of an evaluation, which it then forgets. */
  score: { in: EvaluationName & { readonly numSamples: number }; out: Scores };
};

/** What a feeder is born with. */
export interface FeederInit {
  readonly jobUrl: string;
  readonly config: JobConfig;
  readonly seed: number;
}
