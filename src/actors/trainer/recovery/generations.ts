import { type Failure, fromFailure } from "../../../runtime/index.ts";

/** Counts the generations of a group for whoever waits for the next, and how long the present one has made steps. */
export class Generations {
  #present = 0;
  #firstStepAtMs: number | undefined;
  #endedBy: Failure | undefined;
  #givenUp: Failure | undefined;
  readonly #waiting: (() => void)[] = [];

  /** Which generation the group is in, counted from 0. */
  get present(): number {
    return this.#present;
  }

  /** The next generation has begun; `endedBy` is what ended the last, where it failed. */
  begin(endedBy: Failure | undefined): void {
    this.#present += 1;
    this.#firstStepAtMs = undefined;
    this.#endedBy = endedBy;
    this.#wake();
  }

  /** @returns for how long the present generation has made steps, in ms */
  madeStep(nowMs: number): number {
    this.#firstStepAtMs ??= nowMs;
    return nowMs - this.#firstStepAtMs;
  }

  /** No generation follows. */
  giveUp(cause: Failure): void {
    this.#givenUp = cause;
    this.#wake();
  }

  /**
   * Resolves once the group works again after its generation number `generation`, with what ended the one before.
   * @throws {TroupeError} the cause for which the group was given up
   */
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
