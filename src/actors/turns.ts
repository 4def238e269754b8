import { setTimeout as delay, setImmediate as nextTurn } from "node:timers/promises";

/**
 * Deals the turns of an actor's event loop: one piece of work each, in the order in which they asked, so that between two
 * of them messages come and go.
 */
export class Turns {
  readonly #delayMs: number;
  #last: Promise<void> = Promise.resolve();

  /** @param delayMs - each turn is put off for so long, on purpose: what slower work would cost */
  constructor(delayMs = 0) {
    this.#delayMs = delayMs;
  }

  /** Resolves when it is the caller's turn. */
  next(): Promise<void> {
    const wait = this.#delayMs === 0 ? nextTurn : () => delay(this.#delayMs);
    this.#last = this.#last.then(() => wait());
    return this.#last;
  }
}
