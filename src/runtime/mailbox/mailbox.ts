import { type LaneIndex, laneIndex } from "../protocol/lane.ts";
import { Queue } from "./queue.ts";

/** The parts of a message that a mailbox reads. */
export interface Queued {
  readonly kind: string;
  readonly lane: LaneIndex;
}

/** The messages that wait to be handled: control first, then data, then telemetry, each lane first in, first out. */
export class Mailbox<Message extends Queued> {
  readonly #lanes: readonly [Queue<Message>, Queue<Message>, Queue<Message>] = [
    new Queue(),
    new Queue(),
    new Queue(),
  ];

  put(message: Message): void {
    this.#lanes[message.lane].push(message);
  }

  take(): Message | undefined {
    return this.#lanes[0].shift() ?? this.#lanes[1].shift() ?? this.#lanes[2].shift();
  }

  /** Takes the next message of the control lane whose kind is not among `except`. */
  takeControl(except: readonly string[]): Message | undefined {
    const control = this.#lanes[laneIndex.control];
    return control.size === 0 ? undefined : control.removeFirst(({ kind }) => !except.includes(kind));
  }

  /** Takes the oldest message of one of these kinds, control lane first. */
  takeKind(kinds: readonly string[]): Message | undefined {
    for (const lane of this.#lanes) {
      const message = lane.size === 0 ? undefined : lane.removeFirst(({ kind }) => kinds.includes(kind));
      if (message !== undefined) return message;
    }
    return undefined;
  }

  /** Drops all messages. */
  clear(): void {
    for (const lane of this.#lanes) lane.drain();
  }

  get size(): number {
    return this.#lanes[0].size + this.#lanes[1].size + this.#lanes[2].size;
  }
}
