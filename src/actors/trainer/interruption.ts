import { constants } from "node:os";

/** Signals that end a run: from a key, an administrator, a closing terminal, or a scheduler that warns its jobs. */
const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2"] as const;

/** Handles signals during a run: the first ends it in order, the second the process, with exit code 128 plus its number. */
export class Interruption implements Disposable {
  readonly #onFirst: (signal: NodeJS.Signals) => void;
  #first: NodeJS.Signals | undefined;

  /** @param onFirst - lets the run end; called once */
  constructor(onFirst: (signal: NodeJS.Signals) => void) {
    this.#onFirst = onFirst;
    for (const signal of SIGNALS) process.on(signal, this.#hear);
  }

  /** The signal received first; undefined if none was. */
  get signal(): NodeJS.Signals | undefined {
    return this.#first;
  }

  /** Stops handling signals. */
  [Symbol.dispose](): void {
    for (const signal of SIGNALS) process.off(signal, this.#hear);
  }

  readonly #hear = (signal: NodeJS.Signals) => {
    if (this.#first !== undefined) process.exit(128 + constants.signals[signal]);
    this.#first = signal;
    this.#onFirst(signal);
  };
}
