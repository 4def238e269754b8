import type { Connection } from "../messaging/connection.ts";
import { type LaneIndex, laneIndex } from "./ledger.ts";
import { Queue } from "./queue.ts";
import type { Envelope } from "../protocol/record.ts";

/** A message that arrived, and where its answer goes. */
export interface Delivery extends Envelope {
  readonly from: Connection;
  readonly lane: LaneIndex;
  /** When it arrived, where it belongs to a trace; else 0. */
  readonly receivedMs: number;
}

/** What waits to be handled: control first, then data, then telemetry, each first in, first out. */
export class Mailbox {
  readonly #lanes: readonly [Queue<Delivery>, Queue<Delivery>, Queue<Delivery>] = [
    new Queue(),
    new Queue(),
    new Queue(),
  ];

  put(delivery: Delivery): void {
    this.#lanes[delivery.lane].push(delivery);
  }

  /** Takes the next message. */
  take(): Delivery | undefined {
    return this.#lanes[0].shift() ?? this.#lanes[1].shift() ?? this.#lanes[2].shift();
  }

  /** Takes the next message of the control lane whose kind is not among `except`. */
  takeControl(except: readonly string[]): Delivery | undefined {
    const control = this.#lanes[laneIndex.control];
    return control.size === 0 ? undefined : control.removeFirst(({ kind }) => !except.includes(kind));
  }

  /** Takes the oldest message of one of these kinds, control lane first. */
  takeKind(kinds: readonly string[]): Delivery | undefined {
    for (const lane of this.#lanes) {
      const delivery = lane.size === 0 ? undefined : lane.removeFirst(({ kind }) => kinds.includes(kind));
      if (delivery !== undefined) return delivery;
    }
    return undefined;
  }

  /** Throws everything away. */
  clear(): void {
    for (const lane of this.#lanes) lane.drain();
  }

  get size(): number {
    return this.#lanes[0].size + this.#lanes[1].size + this.#lanes[2].size;
  }
}
