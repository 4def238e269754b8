import { reportError, type TroupeEventBody } from "../../../job/events/index.ts";

/** Sees to it that each save whose beginning was reported has an end, before the run has its own. */
export class ReportedSaves {
  readonly #emit: (event: TroupeEventBody) => void;
  /** Steps whose save has begun and not ended. */
  readonly #underWay = new Set<number>();
  #isOver = false;

  constructor(emit: (event: TroupeEventBody) => void) {
    this.#emit = emit;
  }

  /** Passes a run's event on, unless the run is over. */
  emit(event: TroupeEventBody): void {
    if (!this.#isOver) this.#emit(event);
  }

  begun(step: number): void {
    this.#underWay.add(step);
  }

  ended(step: number): void {
    this.#underWay.delete(step);
  }

  /** The run has failed: what was being saved is given up with it, and nothing is reported after that. */
  giveUp(error: unknown): void {
    for (const step of this.#underWay)
      this.emit({ kind: "checkpoint.failed", step, error: reportError(error) });
    this.#isOver = true;
  }
}
