import type { Buckets, Statistics, TagUse } from "../../compute/tensor/index.ts";
import type { EventOf } from "../../job/events/index.ts";

/** What one shard knows of one parameter that is inspected. Plain data. */
export interface InspectedPart {
  readonly name: string;
  /** Of the whole parameter. */
  readonly shape: readonly number[];
  readonly values: Statistics;
  /** Of the averaged gradient; none where the parameter is not trained. */
  readonly gradient: Statistics | undefined;
}

/** A histogram as the events tell it. */
export type HistogramBody = Omit<EventOf<"histogram.measured">, "timeMs" | "schemaVersion">;

/** What one shard knows of the values of one parameter, or of its gradient. Plain data. */
export interface HistogramPart {
  readonly name: string;
  readonly of: HistogramBody["of"];
  readonly buckets: Buckets;
  /** What the values are to be multiplied by: gradients are sums when they are looked at. */
  readonly factor: number;
}

/**
 * How an optimizer step has moved a parameter, or a part of it: what it took off its values, over the learning rate. That is
 * the direction of AdamW, m̂ / (√v̂ + eps) + decay · p, and of any other optimizer, as float32 has carried it out. Plain data.
 */
export interface InspectedUpdate {
  readonly name: string;
  /** Of the whole parameter. */
  readonly shape: readonly number[];
  /** 0 where the learning rate was. */
  readonly direction: Statistics;
}

/** What one rank holds, its shard and its offload actor with it. Plain data. */
export interface HeldMemory {
  readonly rank: number;
  /**
   * By kind: "parameters", "master", "optimizer", "gradients", "activations", "snapshot", "staging", "offload", and
   * "working" for what a shard needs for a moment. Whole parameters that several ranks of a process read are the first
   * one's.
   */
  readonly byKind: Readonly<Record<string, TagUse>>;
}

/** What an actor did to a block, on its way to the events. Plain data. */
export type Activity = Pick<
  EventOf<"activity.finished">,
  "kind" | "activity" | "step" | "blockIndex" | "microBatchIndex" | "beginMs" | "endMs"
>;

/** How far a save has come, on its way to the events. Plain data. */
export type SaveProgress = Pick<
  EventOf<"checkpoint.progressed">,
  "kind" | "step" | "writtenBytes" | "totalBytes"
>;
