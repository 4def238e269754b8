import { hrtime } from "node:process";

/** A timer that has not run yet. */
export interface Timer {
  cancel(): void;
}

/** A clock with timers. It is passed in, so that a test can control time. */
export interface Clock {
  /** Monotonic time in ms, the same in every thread of this process. */
  readonly now: () => number;
  /** Runs `run` once after `delayMs`, never if that is infinite; a `background` timer does not keep the process alive. */
  after(delayMs: number, run: () => void, options?: { readonly background?: boolean }): Timer;
}

/** Bound on how fast the clocks of two hosts drift apart; the least lag of what one sends the other grows at this rate. */
export const mostDrift = 1e-3;

/** Node's timers run at once if they are to wait for longer. */
const mostTimeoutMs = 2 ** 31 - 1;

/** The clock of the machine. */
export const systemClock: Clock = {
  // Not performance.now(), which counts from its own thread's start.
  now: () => {
    const time = hrtime();
    return time[0] * 1e3 + time[1] / 1e6;
  },
  after(delayMs, run, options = {}) {
    let timer: NodeJS.Timeout;
    const wait = (leftMs: number): void => {
      if (leftMs > mostTimeoutMs) timer = setTimeout(() => wait(leftMs - mostTimeoutMs), mostTimeoutMs);
      else timer = setTimeout(run, leftMs);
      if (options.background) timer.unref();
    };
    wait(delayMs);
    return { cancel: () => clearTimeout(timer) };
  },
};
