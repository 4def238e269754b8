import { StepCounter } from "../../compute/parallel/index.ts";

/** What a rank's parameters were set to when it had made a step's first forward: which of them were frozen. */
export class FrozenFlags {
  /** In order of the steps; of those that are over, no more than steps under way may ask for. */
  #told: { readonly step: number; readonly frozen: readonly string[] }[] = [];
  /** The latest step that has begun. */
  readonly #begun = new StepCounter();

  /** @param frozen - names; undefined where they are those of the step before */
  begin(step: number, frozen: readonly string[] | undefined): void {
    if (frozen !== undefined) this.#told.push({ step, frozen });
    this.#begun.reach(step);
  }

  /** @returns names of what a step had frozen, once it has begun */
  async at(step: number): Promise<readonly string[]> {
    await this.#begun.until(step);
    return this.#told.findLast((told) => told.step <= step)?.frozen ?? [];
  }

  /** Nobody asks for what was before `step` any more. */
  forget(step: number): void {
    const last = this.#told.findLastIndex((told) => told.step <= step);
    this.#told = this.#told.slice(Math.max(last, 0));
  }

  /** Whoever waits, now or later, gets `reason`. */
  abort(reason: Error): void {
    this.#begun.abort(reason);
  }
}
