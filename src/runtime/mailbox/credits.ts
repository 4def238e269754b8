import type { LaneIndex } from "../protocol/lane.ts";

/** Number of lanes that a link counts. */
export const numLanes = 3;

/**
 * How many messages of each lane the receiver of a link has taken to handle, as one end of it knows. From it come the sender's
 * credit and, when the receiver dies, what was lost. Counts wrap at 2^31: compare them by difference.
 */
export interface Credits {
  /** Messages this end sent that the other has taken. */
  takenByPeer(lane: LaneIndex): number;
  /** Asks the other end to say when it has taken `numTaken` in all. */
  askForCredit(lane: LaneIndex, numTaken: number): void;
  /** Enters that this end took one message; returns whether the other end is to be told now. */
  take(lane: LaneIndex): boolean;
}
