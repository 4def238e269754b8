import { TroupeError } from "../../errors/index.ts";
import { currentRank } from "./current-rank.ts";

/** A clock that is started and stopped, and adds up. */
export interface Timer {
  start(): void;
  stop(): void;
  /** Seconds between its starts and stops, up to now where it runs; from 0 again afterwards unless `reset` is false. */
  elapsed(reset?: boolean): number;
}

/** A script's clocks by their names, each made where it is first named. */
export interface Timers {
  (name: string): Timer;
  /** Writes milliseconds of some of them in a line, from the first rank, each over `normalizer`, and begins them anew. */
  log(names: readonly string[], normalizer?: number): void;
}

/**
 * The seed's `get_timers()`, with Megatron's functions. They tell the time of the rank's thread: of a GPU, until work was handed to it.
 * What a run itself does is timed without them: `--trace` has every pass, gather and update.
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
      const told = names.map(
        (name) => `${name}: ${((1000 * timers(name).elapsed()) / normalizer).toFixed(2)}`,
      );
      currentRank().print(["time (ms)", ...told].join(" | "));
    },
  },
);

function timer(name: string): Timer {
  let sumS = 0;
  let since: number | undefined;
  const runningS = () => (since === undefined ? 0 : (performance.now() - since) / 1000);
  return {
    start() {
      if (since !== undefined) throw refused(name, "a timer that stands", "one that runs");
      since = performance.now();
    },
    stop() {
      if (since === undefined) throw refused(name, "a timer that runs", "one that stands");
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
