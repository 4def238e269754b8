import type { LaneIndex } from "../protocol/lane.ts";

/** Number of lanes. */
export const numLanes = 3;

/**
 * One end's view of how many messages of each lane the receiver of a link has taken. It gives the sender's credit and, when
 * the receiver dies, the lost messages. Counts wrap at 2^31: compare them by difference.
 */
export interface Credits {
  /** Number of messages of this end that the other end has taken. */
  takenByPeer(lane: LaneIndex): number;
  /** Asks the other end to report when it has taken `numTaken` messages in all. */
  askForCredit(lane: LaneIndex, numTaken: number): void;
  /** Counts one message as taken by this end; returns whether to report it to the other end now. */
  take(lane: LaneIndex): boolean;
}
