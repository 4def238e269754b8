import type { ActorFacts } from "./actor.ts";

/** Events of a trace: an actor's work and messages, with times. */
export type TracedEvent = ActivityFinished | MessageHandled;

/** An actor finished a piece of work; reported in traced runs only. Times are on the clock of `run.started`. */
export interface ActivityFinished extends ActorFacts {
  readonly kind: "activity.finished";
  /**
   * "forward" and "backward" of a micro-batch on a rank; "wait": it waited for a block, or for another stage;
   * "compute": the moment at which it has the block and goes on; "reduce" and "update": the block's gradient, its
   * parameters; "bring" and "store": its offloaded parameters are read from the file, or written to it.
   */
  readonly activity: "forward" | "backward" | "wait" | "compute" | "reduce" | "update" | "bring" | "store";
  readonly step: number;
  /** Number of the block, 0 for the root; −1 where the work belongs to no single block. */
  readonly blockIndex: number;
  /** Number of the micro-batch, where the work belongs to one. */
  readonly microBatchIndex?: number | undefined;
  readonly beginMs: number;
  readonly endMs: number;
}

/** An actor handled a message that belongs to a trace. Times are on the clock of `run.started`. */
export interface MessageHandled extends ActorFacts {
  readonly kind: "message.handled";
  /** The actor that sent it, `name#incarnation`. */
  readonly from: string;
  readonly messageKind: string;
  /** Id of the trace, shared by everything that one start has caused, on all threads and processes: 32 hexadecimal digits. */
  readonly traceId: string;
  /** Id of this handling: 16 hexadecimal digits. */
  readonly spanId: string;
  /** The handling that sent the message; left out for the start of the trace. */
  readonly parentId?: string | undefined;
  /** Whether the handler awaited something, so that other messages could be handled meanwhile. */
  readonly awaited: boolean;
  readonly sentMs: number;
  /** When it reached the receiver's mailbox. */
  readonly receivedMs: number;
  readonly beginMs: number;
  readonly endMs: number;
}
