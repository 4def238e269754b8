import type { RewindRequest } from "../../../job/anomalies/index.ts";

/** A run that goes back so often without getting any further will not by going back once more. */
const MAX_IN_A_ROW = 3;

/**
 * Decides how far a run goes back. What goes wrong again before the run has got past the place where it first did was
 * wrong already in the state that it went back to: then it goes back behind that one.
 */
export class Rewinds {
  #last: { readonly from: number; readonly to: number } | undefined;
  #numInARow = 0;

  /**
   * @returns the most updates that the state to go back to may have seen
   * @throws the request's reason where going back does not help
   */
  latestStep({ step, reason }: RewindRequest): number {
    const isAgain = this.#last !== undefined && step <= this.#last.from;
    this.#numInARow = isAgain ? this.#numInARow + 1 : 1;
    if (this.#numInARow > MAX_IN_A_ROW) throw reason;
    return isAgain ? (this.#last as { to: number }).to - 1 : step;
  }

  /** The run went back from before step `from` to before step `to`. */
  note(from: number, to: number): void {
    this.#last = { from: Math.max(from, this.#last?.from ?? 0), to };
  }
}
