import { hrtime } from "node:process";

/** A timer that has not run yet. */
export interface Timer {
  cancel(): void;
}

/** A clock with timers. It is passed in, so that a test can control time. */
export interface Clock {
  /** Monotonic time in ms, the same in every thread of this process. */
  readonly now: () => number;
  /** Runs `run` once after `delayMs`; a `background` timer does not keep the process alive. */
  after(delayMs: number, run: () => void, options?: { readonly background?: boolean }): Timer;
}

/** The clock of the machine. */
export const systemClock: Clock = {
  // Not performance.now(), which counts from its own thread's start.
  now: () => {
    const time = hrtime();
    return time[0] * 1e3 + time[1] / 1e6;
  },
  after(delayMs, run, options = {}) {
    const timer = setTimeout(run, delayMs);
    if (options.background) timer.unref();
    return { cancel: () => clearTimeout(timer) };
  },
};

/** A clock that moves only by `advance`, which runs its timers in order of their time. */
export class FakeClock implements Clock {
  // An integer, so that sums of integers are exact; near the real time, because deadlines travel.
  #nowMs = Math.ceil(systemClock.now());
  readonly #timers = new Set<{ readonly atMs: number; readonly run: () => void }>();

  readonly now = (): number => this.#nowMs;

  after(delayMs: number, run: () => void): Timer {
    const timer = { atMs: this.#nowMs + delayMs, run };
    this.#timers.add(timer);
    return { cancel: () => this.#timers.delete(timer) };
  }

  /** How many timers wait to run. */
  get numTimers(): number {
    return this.#timers.size;
  }

  /** Moves time on by `elapsedMs` and runs the timers that fall due on the way. */
  advance(elapsedMs: number): void {
    const endMs = this.#nowMs + elapsedMs;
    for (;;) {
      const next = [...this.#timers].sort((left, right) => left.atMs - right.atMs)[0];
      if (next === undefined || next.atMs > endMs) break;
      this.#timers.delete(next);
      this.#nowMs = next.atMs;
      next.run();
    }
    this.#nowMs = endMs;
  }
}
