import type { Buckets, Statistics, TagUse } from "../../compute/tensor/index.ts";
import type { EventOf } from "../../job/events/index.ts";

/** One shard's statistics of one inspected parameter. Plain data. */
export interface InspectedPart {
  readonly name: string;
  /** Shape of the complete parameter. */
  readonly shape: readonly number[];
  readonly values: Statistics;
  /** Statistics of the averaged gradient; undefined where the parameter is not trained. */
  readonly gradient: Statistics | undefined;
}

/** A histogram as events carry it. */
export type HistogramBody = Omit<EventOf<"histogram.measured">, "timeMs" | "schemaVersion">;

/** One shard's histogram of a parameter's values or gradient. Plain data. */
export interface HistogramPart {
  readonly name: string;
  readonly of: HistogramBody["of"];
  readonly buckets: Buckets;
  /** Multiplies the values: gradients are still sums when they are measured. */
  readonly factor: number;
}

/**
 * How an optimizer step moved a parameter, or a part of one: the amount subtracted from its values, divided by the
 * learning rate. For AdamW that is m̂ / (√v̂ + eps) + decay · p, in float32. Plain data.
 */
export interface InspectedUpdate {
  readonly name: string;
  /** Shape of the complete parameter. */
  readonly shape: readonly number[];
  /** 0 where the learning rate was 0. */
  readonly direction: Statistics;
}

/** Memory held by one rank, its shard and its offload actor. Plain data. */
export interface HeldMemory {
  readonly rank: number;
  /**
   * By kind: "parameters", "master", "optimizer", "gradients", "activations", "snapshot", "staging", "offload", and "working" for
   * a shard's short-lived tensors. Gathered parameters that several ranks of a process share count for the first of them.
   */
  readonly byKind: Readonly<Record<string, TagUse>>;
}

/** An actor's activity on a block, on its way to the events. Plain data. */
export type Activity = Pick<
  EventOf<"activity.finished">,
  "kind" | "activity" | "step" | "blockIndex" | "microBatchIndex" | "beginMs" | "endMs"
>;

/** Progress of a save, on its way to the events. Plain data. */
export type SaveProgress = Pick<
  EventOf<"checkpoint.progressed">,
  "kind" | "step" | "writtenBytes" | "totalBytes"
>;
