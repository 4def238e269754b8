import { reportError, type TroupeEventBody } from "../events/index.ts";

/** Passes a run's events on, and sees to it that each save whose beginning was told has an end, before the run has its own. */
export class ToldSaves {
  readonly #emit: (event: TroupeEventBody) => void;
  /** Steps whose save has begun and not ended. */
  readonly #underWay = new Set<number>();
  #isOver = false;

  constructor(emit: (event: TroupeEventBody) => void) {
    this.#emit = emit;
  }

  /** Passes an event on, unless the run is over. */
  tell(event: TroupeEventBody): void {
    if (this.#isOver) return;
    if (event.kind === "checkpoint.started") this.#underWay.add(event.step);
    if (event.kind === "checkpoint.saved" || event.kind === "checkpoint.failed")
      this.#underWay.delete(event.step);
    this.#emit(event);
  }

  /** The run has failed: what was being saved is given up with it, and nothing is told after that. */
  giveUp(error: unknown): void {
    for (const step of this.#underWay)
      this.tell({ kind: "checkpoint.failed", step, error: reportError(error) });
    this.#isOver = true;
  }
}
