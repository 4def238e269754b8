import { type Failure, fromFailure } from "../../../runtime/index.ts";

/** Counts the generations of a group, lets callers wait for the next one, and times how long the present one has made steps. */
export class Generations {
  #present = 0;
  #firstStepAtMs: number | undefined;
  #endedBy: Failure | undefined;
  #givenUp: Failure | undefined;
  readonly #waiting: (() => void)[] = [];

  /** Number of the present generation, from 0. */
  get present(): number {
    return this.#present;
  }

  /** Starts the next generation; `endedBy` is the failure that ended the last one, if any. */
  begin(endedBy: Failure | undefined): void {
    this.#present += 1;
    this.#firstStepAtMs = undefined;
    this.#endedBy = endedBy;
    this.#wake();
  }

  /** Notes a step and returns how long the present generation has made steps, in ms. */
  madeStep(nowMs: number): number {
    this.#firstStepAtMs ??= nowMs;
    return nowMs - this.#firstStepAtMs;
  }

  /** Ends the group: no generation follows. */
  giveUp(cause: Failure): void {
    this.#givenUp = cause;
    this.#wake();
  }

  /** Resolves once `generation` has a successor, with the failure that ended the one before. @throws why the group gave up */
  async after(generation: number): Promise<Failure | undefined> {
    while (this.#present <= generation) {
      if (this.#givenUp !== undefined) throw fromFailure(this.#givenUp);
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    }
    return this.#endedBy;
  }

  #wake(): void {
    for (const wake of this.#waiting.splice(0)) wake();
  }
}
