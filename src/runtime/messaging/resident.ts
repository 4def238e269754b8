import type { Address } from "../protocol/address.ts";
import type { DeadLetter } from "../protocol/dead-letter.ts";
import type { LaneIndex } from "../protocol/lane.ts";
import type { Envelope } from "../protocol/record.ts";
import type { Connection } from "./connection.ts";

/** A message that arrived, with the connection for its answer. */
export interface Delivery extends Envelope {
  readonly from: Connection;
  readonly lane: LaneIndex;
  /** When it arrived, if it belongs to a trace; otherwise 0. */
  readonly receivedMs: number;
}

/** The owner of an endpoint, an actor's cell or the system, as the endpoint calls it. */
export interface Resident {
  /** A message of the protocol arrived. */
  onMessage(delivery: Delivery): void;
  /** A record between actor and system arrived. */
  onSystemRecord(from: Connection, record: Envelope): void;
  /** A watched actor has ended: one more call of its endpoint's watches is due. */
  onDown(): void;
  /** An actor that it had a link to has ended. */
  onPeerEnded(uid: number): void;
  /** Packets were received: handle their messages. */
  wake(): void;
  /** Called while this thread blocks, each time it has polled its ports; throws to break off. */
  interrupt(): void;
  /** Asks for a link to an actor; the reply is a call of `attach` or `ended`. */
  requestLink(to: Address): void;
  /** Asks for a report of an actor's end; the reply is a call of `ended`. */
  requestDown(of: Address): void;
  /** Withdraws {@link requestDown}. */
  forgoDown(of: Address): void;
  /** A message could not be delivered. */
  onDeadLetter(letter: DeadLetter, message: unknown): void;
}
