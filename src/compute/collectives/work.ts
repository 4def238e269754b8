import { native } from "../tensor/index.ts";

/**
 * A collective under way. Its tensors must not be touched, and its result is not there, before {@link wait} has returned.
 * Every work must be waited for once, even where only the others need it: that is where errors arrive.
 */
export interface Work {
  /**
   * Blocks the thread, in native code, until this rank's part is complete; at once when it is.
   * @throws {TroupeError} `COLLECTIVE_MISMATCH`, `COLLECTIVE_TIMEOUT`, `COLLECTIVE_ABORTED`
   */
  wait(): void;
  /**
   * The same for an event loop, which goes on meanwhile.
   * @throws {TroupeError} `COLLECTIVE_ARGUMENT` too, for work of `local`, which its ranks carry out while they wait
   */
  ended(): Promise<void>;
  /** Whether {@link wait} would return, or throw, without blocking. */
  readonly done: boolean;
}

/** A work that was complete when it was issued. */
export const finished: Work = { wait() {}, async ended() {}, done: true };

/** A work by its native number, which names it until it was waited for. */
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
