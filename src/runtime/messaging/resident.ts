import type { Address } from "../protocol/address.ts";
import type { DeadLetter } from "../protocol/dead-letter.ts";
import type { LaneIndex } from "../protocol/lane.ts";
import type { Envelope } from "../protocol/record.ts";
import type { Connection } from "./connection.ts";

/** A message that arrived, and where its answer goes. */
export interface Delivery extends Envelope {
  readonly from: Connection;
  readonly lane: LaneIndex;
  /** When it arrived, where it belongs to a trace; else 0. */
  readonly receivedMs: number;
}

/** Who lives at an endpoint, an actor's cell or the system: what the endpoint needs of it. */
export interface Resident {
  /** A message of the protocol came. */
  onMessage(delivery: Delivery): void;
  /** A record between actor and system came. */
  onSystemRecord(from: Connection, record: Envelope): void;
  /** A watched actor has ended: one more call of its endpoint's watches is due. */
  onDown(): void;
  /** Packets were taken in: time to handle what they brought. */
  wake(): void;
  /** Called whenever this thread, while it blocks, has looked into its ports; throws to break off. */
  interrupt(): void;
  /** Asks for a link to an actor: answered by `attach` or `ended`. */
  requestLink(to: Address): void;
  /** Asks to be told of an actor's end: answered by `ended`. */
  requestDown(of: Address): void;
  /** Takes that back. */
  forgoDown(of: Address): void;
  /** A message could not be delivered. */
  onDeadLetter(letter: DeadLetter, message: unknown): void;
}
