import { TroupeError } from "../../errors/index.ts";
import { currentRank } from "./current-rank.ts";

/** A stopwatch that accumulates. */
export interface Timer {
  start(): void;
  stop(): void;
  /** Total seconds between starts and stops, up to now if it runs; then resets to 0 unless `reset` is false. */
  elapsed(reset?: boolean): number;
}

/** A script's timers by name, each made on first use. */
export interface Timers {
  (name: string): Timer;
  /** Prints milliseconds of some timers on one line, each divided by `normalizer`, from the first rank; resets them. */
  log(names: readonly string[], normalizer?: number): void;
}

/**
 * Megatron's `get_timers()`. They measure the rank's thread: on a GPU, the time to launch work, not to run it. The run itself needs
 * no timers: `--trace` shows every pass, gather and update.
 */
export function getTimers(): Timers {
  return timers;
}

const clocks = new Map<string, Timer>();

const timers: Timers = Object.assign(
  (name: string) => {
    const clock = clocks.get(name) ?? timer(name);
    clocks.set(name, clock);
    return clock;
  },
  {
    log(names: readonly string[], normalizer = 1) {
      const times = names.map(
        (name) => `${name}: ${((1000 * timers(name).elapsed()) / normalizer).toFixed(2)}`,
      );
      currentRank().print(["time (ms)", ...times].join(" | "));
    },
  },
);

function timer(name: string): Timer {
  let sumS = 0;
  let since: number | undefined;
  const runningS = () => (since === undefined ? 0 : (performance.now() - since) / 1000);
  return {
    start() {
      if (since !== undefined) throw refused(name, "a stopped timer", "a running one");
      since = performance.now();
    },
    stop() {
      if (since === undefined) throw refused(name, "a running timer", "a stopped one");
      sumS += runningS();
      since = undefined;
    },
    elapsed(reset = true) {
      const allS = sumS + runningS();
      if (reset) {
        sumS = 0;
        if (since !== undefined) since = performance.now();
      }
      return allS;
    },
  };
}

function refused(name: string, expected: string, got: string): TroupeError {
  return new TroupeError("LOOP_ORDER", { where: `getTimers()("${name}")`, expected, got });
}
