import { reportError, type TroupeEventBody } from "../../../job/events/index.ts";

/** Makes sure that every save reported as begun is also reported as ended before the run's end. */
export class ReportedSaves {
  readonly #emit: (event: TroupeEventBody) => void;
  /** Steps whose save has begun and not ended. */
  readonly #underWay = new Set<number>();
  #isOver = false;

  constructor(emit: (event: TroupeEventBody) => void) {
    this.#emit = emit;
  }

  /** Forwards a run's event, unless the run is over. */
  emit(event: TroupeEventBody): void {
    if (!this.#isOver) this.#emit(event);
  }

  begun(step: number): void {
    this.#underWay.add(step);
  }

  ended(step: number): void {
    this.#underWay.delete(step);
  }

  /** Reports that the unfinished saves failed with the run, and forwards no more events. */
  giveUp(error: unknown): void {
    for (const step of this.#underWay)
      this.emit({ kind: "checkpoint.failed", step, error: reportError(error) });
    this.#isOver = true;
  }
}
