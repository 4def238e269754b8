import { TroupeError } from "../../errors/index.ts";
import type { LaneIndex } from "../protocol/lane.ts";
import type { Outgoing } from "../protocol/record.ts";
import type { Credits } from "./credits.ts";
import { Queue } from "./queue.ts";

/** Limits of one lane of a connection. */
export interface LaneLimits {
  /** Most messages sent and not yet taken by the receiver. */
  readonly window: number;
  /** Most messages that wait here for credit. */
  readonly capacity: number;
  /** Whether one more drops the oldest or throws at the sender. */
  readonly whenFull: "drop-oldest" | "refuse";
}

/** The sending side of one lane of one connection: messages under way and messages that wait for credit. */
export class LaneSender {
  readonly index: LaneIndex;
  readonly #limits: LaneLimits;
  readonly #underWay = new Queue<Outgoing>();
  readonly #waiting = new Queue<Outgoing>();
  #numTaken = 0;
  #numDropped = 0;

  constructor(lane: LaneIndex, limits: LaneLimits) {
    this.index = lane;
    this.#limits = limits;
  }

  /** Number of messages that wait for credit. */
  get numWaiting(): number {
    return this.#waiting.size;
  }

  /** The receiver's count at which half the window is free. Resuming earlier would cost a packet per message. */
  get numTakenToResume(): number {
    return this.#numTaken + Math.max(1, this.#underWay.size - (this.#limits.window >> 1));
  }

  /** Accepts a message and returns it if it may be sent at once. */
  offer(message: Outgoing, credits: Credits | undefined): Outgoing | undefined {
    this.#settle(credits);
    if (this.#waiting.size === 0 && this.#underWay.size < this.#limits.window) {
      this.#underWay.push(message);
      return message;
    }
    if (this.#waiting.size >= this.#limits.capacity) this.#makeRoom(message);
    this.#waiting.push(message);
    return undefined;
  }

  /** Returns the next waiting message that may be sent now. */
  release(credits: Credits): Outgoing | undefined {
    if (this.#waiting.size === 0) return undefined;
    this.#settle(credits);
    if (this.#underWay.size >= this.#limits.window) return undefined;
    const message = this.#waiting.shift() as Outgoing;
    this.#underWay.push(message);
    return message;
  }

  /** Forgets a message that could not be posted, as if it had never been accepted. */
  withdraw(id: number, body: unknown): void {
    this.#underWay.removeFirst((message) => message.id === id && message.body === body);
  }

  /** Removes and returns every message that the receiver has not taken, oldest first. */
  abandon(credits: Credits | undefined): Outgoing[] {
    this.#settle(credits);
    return [...this.#underWay.drain(), ...this.#waiting.drain()];
  }

  /** Removes and returns every message that waits for credit, oldest first. */
  abandonWaiting(): Outgoing[] {
    return this.#waiting.drain();
  }

  /** Returns the number of messages dropped since the last call. */
  takeDropped(): number {
    const numDropped = this.#numDropped;
    this.#numDropped = 0;
    return numDropped;
  }

  /** Releases the messages that the receiver has taken; at every message, so that no body is held for longer than needed. */
  #settle(credits: Credits | undefined): void {
    if (credits === undefined) return;
    const numTaken = credits.takenByPeer(this.index);
    for (let left = (numTaken - this.#numTaken) | 0; left > 0; left--) this.#underWay.shift();
    this.#numTaken = numTaken;
  }

  #makeRoom(message: Outgoing): void {
    if (this.#limits.whenFull === "refuse") throw outboxFull(message.kind, this.#limits.capacity);
    this.#waiting.shift();
    this.#numDropped += 1;
  }
}

function outboxFull(kind: string, capacity: number): TroupeError {
  return new TroupeError("OUTBOX_FULL", {
    where: `tell ${kind}`,
    expected: `at most ${capacity} messages waiting for credit`,
    got: "one more",
    hint: "await ref.ready() whenever tell returns false",
    fields: { kind, capacity },
  });
}
