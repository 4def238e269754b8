import { TroupeError } from "../../errors.ts";
import type { Delivery } from "../mailbox/mailbox.ts";

/** What a stash needs of the actor it belongs to. */
export interface StashOwner {
  /** Puts the message being handled aside: its handler's result is no answer. */
  putAside(): Delivery;
  /** Puts messages back before all others. */
  putBack(deliveries: readonly Delivery[]): void;
}

/** Messages an actor cannot handle yet, at most `capacity` of them. */
export class Stash {
  readonly #capacity: number;
  readonly #owner: StashOwner;
  #held: Delivery[] = [];

  constructor(capacity: number, owner: StashOwner) {
    this.#capacity = capacity;
    this.#owner = owner;
  }

  /** How many are held. */
  get size(): number {
    return this.#held.length;
  }

  /**
   * Puts the message being handled aside; what its handler returns is ignored, a question stays open.
   * @throws {TroupeError} `STASH_FULL` when the stash holds its capacity
   */
  hold(): void {
    if (this.#held.length >= this.#capacity) throw stashFull(this.#capacity);
    this.#held.push(this.#owner.putAside());
  }

  /** Puts everything held back before all other messages, in the order it came. */
  release(): void {
    this.#owner.putBack(this.takeAll());
  }

  /** Empties the stash. */
  takeAll(): readonly Delivery[] {
    const held = this.#held;
    this.#held = [];
    return held;
  }
}

function stashFull(capacity: number): TroupeError {
  return new TroupeError(
    "STASH_FULL",
    `[stash] at most ${capacity} messages: one more came (release it sooner, or give it more capacity)`,
    { fields: { capacity } },
  );
}
