import type { Address } from "./address.ts";

/** Kinds of the runtime's own messages about a stream; those of actors do not begin with a dollar. */
export const streamKind = {
  /** Asks for items, and is handled as any other question. */
  next: "$next",
  /** Does the same for a stream whose kind is concurrent. */
  nextConcurrent: "$next concurrent",
  /** Ends a stream early. */
  end: "$end",
} as const;

/** Answer to a question whose answers are a stream. Plain data. */
export interface OpenedStream {
  readonly stream: number;
  /** The actor that makes the items. */
  readonly producer: Address;
  readonly next: typeof streamKind.next | typeof streamKind.nextConcurrent;
}

/** A request for the next items of a stream. */
export interface StreamDemand {
  readonly stream: number;
  /** The most items that it may answer with; it answers with fewer rather than wait with some. */
  readonly count: number;
}

/** Items of a stream, in order. */
export interface StreamBatch {
  readonly items: readonly unknown[];
  readonly isDone: boolean;
}
