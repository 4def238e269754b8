import type { SavedProgress } from "../../compute/optim/index.ts";
import type { ModelTexts, WrittenTensors } from "../../library/checkpoint/index.ts";
import type { ActorRef } from "../../runtime/index.ts";
import type { SavedShare } from "./save-plan.ts";
import type { SnapshotProtocol, StoredFilesProtocol } from "./snapshot.ts";

/** The writer of a rank's share, and where it writes. Plain data, but for the ref. */
export interface SliceWriter {
  readonly ref: ActorRef<SliceWriterProtocol>;
  /** Whether it writes to a folder of its own host, because it cannot see the run's. */
  readonly isApart: boolean;
}

/** A save that several writers share. Plain data, but for refs. */
export interface SpreadSave {
  /** By rank. */
  readonly writers: readonly SliceWriter[];
  /** The share of each writer. */
  readonly shares: readonly SavedShare[];
  /** The longest time that one of them may take. */
  readonly deadlineMs: number;
}

/** A writer's share of a save. Plain data. */
export interface SliceOrder extends SavedShare {
  readonly generation: number;
  readonly step: number;
  readonly adapter: ModelTexts["adapter"];
  /** Ticket of the draft that the checkpointer has begun. */
  readonly ticket: string;
  readonly isApart: boolean;
}

/** A durable share. Plain data. */
export interface WrittenShare extends WrittenTensors {
  /** The optimizers' progress, where the share's rank knows it. */
  readonly progress: SavedProgress | undefined;
  readonly blockedMs: number;
}

/**
 * Writes one rank's share of each save on that rank's host. It receives the shard's parts instead of the checkpointer,
 * and reports to the checkpointer what it has made durable. It removes files that no manifest names.
 */
export type SliceWriterProtocol = SnapshotProtocol &
  StoredFilesProtocol & {
    begin: { in: { generation: number } };
    /** Whether it finds the mark in the folder. */
    sees: { in: { mark: string }; out: { sees: boolean } };
    write: { in: SliceOrder; out: WrittenShare };
    /** Removes files from a folder of its own host that belong to none of the checkpoints in `present`. */
    tidy: { in: { present: readonly string[]; step: number; ticket: string } };
  };

/** Arguments of a new writer. */
export interface SliceWriterInit {
  readonly rank: number;
  /** As {@link CheckpointerInit.directory}. */
  readonly directory: string;
}
