import { constants } from "node:os";

/** What ends a run by a user's key, by an administrator, by a terminal that goes, and as schedulers warn jobs. */
const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2"] as const;

/**
 * What becomes of signals while a run is under way: the first lets it end in its own time, the second ends the process at once,
 * with 128 and the signal's number.
 */
export class Interruption implements Disposable {
  readonly #onFirst: (signal: NodeJS.Signals) => void;
  #first: NodeJS.Signals | undefined;

  /** @param onFirst - lets the run end; called once */
  constructor(onFirst: (signal: NodeJS.Signals) => void) {
    this.#onFirst = onFirst;
    for (const signal of SIGNALS) process.on(signal, this.#hear);
  }

  /** The signal that came; undefined where none did. */
  get signal(): NodeJS.Signals | undefined {
    return this.#first;
  }

  /** Leaves signals alone from here on. */
  [Symbol.dispose](): void {
    for (const signal of SIGNALS) process.off(signal, this.#hear);
  }

  readonly #hear = (signal: NodeJS.Signals) => {
    if (this.#first !== undefined) process.exit(128 + constants.signals[signal]);
    this.#first = signal;
    this.#onFirst(signal);
  };
}
