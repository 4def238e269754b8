import { StepCounter } from "../../compute/parallel/index.ts";

/** Which of a rank's parameters were frozen after the first forward of each step. */
export class FrozenFlags {
  /** In order of the steps; entries that no step under way can ask for are dropped. */
  #changes: { readonly step: number; readonly frozen: readonly string[] }[] = [];
  readonly #begun = new StepCounter();

  /** @param frozen - names; undefined where they are those of the step before */
  begin(step: number, frozen: readonly string[] | undefined): void {
    if (frozen !== undefined) this.#changes.push({ step, frozen });
    this.#begun.reach(step);
  }

  /** @returns the names of the parameters that a step had frozen, once it has begun */
  async at(step: number): Promise<readonly string[]> {
    await this.#begun.until(step);
    return this.#changes.findLast((change) => change.step <= step)?.frozen ?? [];
  }

  /** Drops everything before `step`. */
  forget(step: number): void {
    const last = this.#changes.findLastIndex((change) => change.step <= step);
    this.#changes = this.#changes.slice(Math.max(last, 0));
  }

  /** Rejects all waits, present and future, with `reason`. */
  abort(reason: Error): void {
    this.#begun.abort(reason);
  }
}
