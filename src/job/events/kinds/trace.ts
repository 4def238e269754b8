/** What an actor did and when, piece by piece and message by message. */
export type TracedEvent = ActivityFinished | MessageHandled;

/** An actor did a piece of work; told only in traced runs. Times on the clock of `run.started`. */
export interface ActivityFinished {
  readonly kind: "activity.finished";
  readonly actor: string;
  readonly incarnation: number;
  /** What it is in the run: "rank", "shard", "offload", "writer", "feeder", "checkpointer". */
  readonly role?: string | undefined;
  /** Which of those, where there are several. */
  readonly index?: number | undefined;
  /**
   * "forward" and "backward" of a micro-batch on a rank; "wait": it stood still for a block, or for another stage;
   * "compute": it has the block and goes on, a moment; "reduce" and "update": the block's gradient, its parameters; "bring"
   * and "store": its offloaded parameters are read from the file, or written into it.
   */
  readonly activity: "forward" | "backward" | "wait" | "compute" | "reduce" | "update" | "bring" | "store";
  readonly step: number;
  /** Of a block, 0 for the root; −1 where the work is of no one block. */
  readonly blockIndex: number;
  /** Of a micro-batch, where the work is of one. */
  readonly microBatchIndex?: number | undefined;
  readonly beginMs: number;
  readonly endMs: number;
}

/** An actor handled a message that belongs to a trace. Times on the clock of `run.started`. */
export interface MessageHandled {
  readonly kind: "message.handled";
  /** Who handled it. */
  readonly actor: string;
  readonly incarnation: number;
  /** What it is in the run: "rank", "shard", "offload", "writer", "feeder", "checkpointer". */
  readonly role?: string | undefined;
  /** Which of those, where there are several. */
  readonly index?: number | undefined;
  /** Who sent it, `name#incarnation`. */
  readonly from: string;
  readonly messageKind: string;
  /** Of everything that one beginning has caused, on all threads and in all processes: 32 hexadecimal digits. */
  readonly traceId: string;
  /** Of this handling: 16 hexadecimal digits. */
  readonly spanId: string;
  /** The handling in which it was sent; none for what began the trace. */
  readonly parentId?: string | undefined;
  /** Whether the handler waited meanwhile and let others be handled. */
  readonly awaited: boolean;
  readonly sentMs: number;
  /** When it reached the mailbox of who handled it. */
  readonly receivedMs: number;
  readonly beginMs: number;
  readonly endMs: number;
}
