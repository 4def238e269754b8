import type { DatasetFacts } from "../data/index.ts";
import type { JobConfig } from "../job/index.ts";
import type { TensorRef } from "../tensor/index.ts";

/** One batch on its way: named tensors, owned by whoever attaches them. */
export type BatchRefs = Readonly<Record<string, TensorRef>>;

/** Which samples a batch is made of. */
export interface BatchRequest {
  readonly split: "train" | "validation";
  /** First sample: of the run, counted over all ranks and micro-batches, or of the held-out part. */
  readonly position: number;
  readonly numSamples: number;
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
  next: { in: BatchRequest & { readonly reader: string }; out: BatchRefs };
};

/** What a feeder is born with. */
export interface FeederInit {
  readonly jobUrl: string;
  readonly config: JobConfig;
  readonly seed: number;
}
