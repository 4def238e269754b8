import type { RewindRequest } from "../../../job/anomalies/index.ts";

/** The most rewinds without progress before the run fails: one more would not help. */
const MAX_IN_A_ROW = 3;

/**
 * Decides how far a run goes back. If a step fails again before the run has passed the first failure, the state that it
 * went back to was already bad: then it goes back further.
 */
export class Rewinds {
  #last: { readonly from: number; readonly to: number } | undefined;
  #numInARow = 0;

  /**
   * Returns the most updates that the state to go back to may have.
   * @throws the request's reason where going back does not help
   */
  latestStep({ step, reason }: RewindRequest): number {
    const isAgain = this.#last !== undefined && step <= this.#last.from;
    this.#numInARow = isAgain ? this.#numInARow + 1 : 1;
    if (this.#numInARow > MAX_IN_A_ROW) throw reason;
    return isAgain ? (this.#last as { to: number }).to - 1 : step;
  }

  /** Notes that the run went back from before step `from` to before step `to`. */
  note(from: number, to: number): void {
    this.#last = { from: Math.max(from, this.#last?.from ?? 0), to };
  }
}
