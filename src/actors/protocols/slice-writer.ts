import type { SavedProgress } from "../../compute/optim/index.ts";
import type { ModelTexts, WrittenTensors } from "../../library/checkpoint/index.ts";
import type { ActorRef } from "../../runtime/index.ts";
import type { SavedShare } from "./save-plan.ts";
import type { SnapshotProtocol, StoredFilesProtocol } from "./snapshot.ts";

/** A writer of a rank's share, and where it writes. Plain data, but for the ref. */
export interface SliceWriter {
  readonly ref: ActorRef<SliceWriterProtocol>;
  /** Whether it writes into a folder of its own host, since it cannot see the run's. */
  readonly isApart: boolean;
}

/** A save that is written by several. Plain data, but for refs. */
export interface SpreadSave {
  /** By rank. */
  readonly writers: readonly SliceWriter[];
  /** What each of them writes. */
  readonly shares: readonly SavedShare[];
  /** How long one of them may take. */
  readonly deadlineMs: number;
}

/** What a writer is to write of a save. Plain data. */
export interface SliceOrder extends SavedShare {
  readonly generation: number;
  readonly step: number;
  readonly adapter: ModelTexts["adapter"];
  /** Of the draft that the checkpointer has begun. */
  readonly ticket: string;
  readonly isApart: boolean;
}

/** A share that is durable. Plain data. */
export interface WrittenShare extends WrittenTensors {
  /** How far the optimizer has come, where the share's rank knows. */
  readonly progress: SavedProgress | undefined;
  readonly blockedMs: number;
}

/**
 * Writes one rank's share of each save where that rank lives: it takes the place of the checkpointer for the rank's shard, and
 * tells the checkpointer what it has made durable. Files that nobody's manifest names are its to remove.
 */
export type SliceWriterProtocol = SnapshotProtocol &
  StoredFilesProtocol & {
    begin: { in: { generation: number } };
    /** Whether it finds the mark in the folder. */
    sees: { in: { mark: string }; out: { sees: boolean } };
    write: { in: SliceOrder; out: WrittenShare };
    /** Of a folder of its own host, removes what belongs to no checkpoint that is still there. */
    tidy: { in: { present: readonly string[]; step: number; ticket: string } };
  };

/** What a writer is born with. */
export interface SliceWriterInit {
  readonly rank: number;
  /** As {@link CheckpointerInit.directory}. */
  readonly directory: string;
}
