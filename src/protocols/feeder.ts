import type { DatasetFacts } from "../data/index.ts";
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

/** The feeder opens a job's data and serves batches by position; it keeps no place, so it can be restarted. */
export type FeederProtocol = {
  open: { in: Record<string, never>; out: OpenedData };
  /** `reader`: whose the tensors are, by the name of {@link recipientName}. */
  next: { in: BatchRequest & { readonly reader: string }; out: DealtBatch };
};

/** What a feeder is born with. */
export interface FeederInit {
  readonly jobUrl: string;
  readonly config: JobConfig;
  readonly seed: number;
}
