import { setTimeout as delay, setImmediate as nextTurn } from "node:timers/promises";

interface Waiting {
  readonly place: number;
  readonly resolve: () => void;
}

/** Deals an actor's event-loop turns: a piece of work each, the lowest place first, with messages in between. */
export class Turns {
  readonly #delayMs: number;
  readonly #waiting: Waiting[] = [];
  #dealing = false;

  /**
   * @param delayMs - delays each turn on purpose, to imitate slower work or a slower device, which goes on while this thread is
   * busy; waiting turns come at its pace, however late this thread is for one of them
   */
  constructor(delayMs = 0) {
    this.#delayMs = delayMs;
  }

  /** Resolves when it is the caller's turn. */
  next(place = 0): Promise<void> {
    return new Promise((resolve) => {
      this.#waiting.push({ place, resolve });
      if (!this.#dealing) void this.#deal();
    });
  }

  async #deal(): Promise<void> {
    this.#dealing = true;
    let dueMs = performance.now();
    while (this.#waiting.length > 0) {
      const first = this.#waiting.reduce((best, each) => (each.place < best.place ? each : best));
      this.#waiting.splice(this.#waiting.indexOf(first), 1);
      if (this.#delayMs === 0) await nextTurn();
      else {
        dueMs += this.#delayMs;
        await delay(Math.max(0, dueMs - performance.now()));
      }
      first.resolve();
    }
    this.#dealing = false;
  }
}
