import { native } from "../tensor/index.ts";

/**
 * A collective under way. Do not touch its tensors before {@link wait} has returned; only then the result is there. Every
 * work must be waited for once, even if only other ranks need the result, because that is where errors are thrown.
 */
export interface Work {
  /**
   * Blocks the thread, in native code, until this rank's part is complete; at once when it is.
   * @throws {TroupeError} `COLLECTIVE_MISMATCH`, `COLLECTIVE_TIMEOUT`, `COLLECTIVE_ABORTED`
   */
  wait(): void;
  /**
   * Waits like {@link wait} without blocking the event loop.
   * @throws {TroupeError} as {@link wait}; `COLLECTIVE_ARGUMENT` for work of `local`, which its ranks carry out while they wait
   */
  ended(): Promise<void>;
  /** Whether {@link wait} would return, or throw, without blocking. */
  readonly done: boolean;
}

/** A work that was complete when it was issued. */
export const finished: Work = { wait() {}, async ended() {}, done: true };

/** A work that is not complete yet, by its native number, which is valid until it was waited for. */
export class PendingWork implements Work {
  #number: number;

  constructor(number: number) {
    this.#number = number;
  }

  wait(): void {
    const number = this.#number;
    this.#number = 0;
    if (number !== 0) native().waitWork(number);
  }

  async ended(): Promise<void> {
    const number = this.#number;
    this.#number = 0;
    if (number !== 0) await native().awaitWork(number);
  }

  get done(): boolean {
    return this.#number === 0 || native().workDone(this.#number);
  }
}
