import { Refused } from "../../../job/http.ts";
import type { CheckpointService } from "../checkpoint-service.ts";
import type { StagedSave } from "../staged-save.ts";

interface OpenSave {
  readonly staged: StagedSave;
  lastHeardMs: number;
  /** Requests that are bringing something now. */
  numBusy: number;
}

const maxOpen = 16;

/**
 * The saves that clients are handing over, by step. One that nobody adds to for a while is given up, and its memory with
 * it: nothing of it was ever anywhere else.
 */
export class OpenSaves {
  readonly #service: CheckpointService;
  readonly #idleMs: number;
  readonly #saves = new Map<number, OpenSave>();
  readonly #sweeper: NodeJS.Timeout;

  constructor(service: CheckpointService, idleMs: number) {
    this.#service = service;
    this.#idleMs = idleMs;
    this.#sweeper = setInterval(() => this.#giveUpIdle(), Math.max(10, idleMs / 4));
    this.#sweeper.unref();
  }

  /** The steps that are open. */
  get steps(): number[] {
    return [...this.#saves.keys()];
  }

  /** Works on the save of a step, beginning it where there is none. @throws {Refused} 503 where too many are open */
  async use<T>(step: number, work: (staged: StagedSave) => Promise<T>): Promise<T> {
    let save = this.#saves.get(step);
    if (save === undefined) {
      if (this.#saves.size === maxOpen) {
        throw new Refused(503, `${maxOpen} saves are open: commit or delete one`, { "retry-after": "10" });
      }
      save = { staged: this.#service.stage(step), lastHeardMs: performance.now(), numBusy: 0 };
      this.#saves.set(step, save);
    }
    save.numBusy += 1;
    try {
      return await work(save.staged);
    } finally {
      save.numBusy -= 1;
      save.lastHeardMs = performance.now();
    }
  }

  /** Takes the save of a step out, to be written. @throws {Refused} 404 where there is none, 409 while parts of it come in */
  take(step: number): StagedSave {
    const save = this.#quiet(step);
    // Those that are not whole stay open for what is missing.
    save.staged.whole();
    this.#saves.delete(step);
    return save.staged;
  }

  /** Gives the save of a step up. @throws {Refused} as {@link take} */
  giveUp(step: number): void {
    this.#quiet(step).staged.area.release();
    this.#saves.delete(step);
  }

  /** Gives all of them up. */
  close(): void {
    clearInterval(this.#sweeper);
    for (const { staged } of this.#saves.values()) staged.area.release();
    this.#saves.clear();
  }

  #quiet(step: number): OpenSave {
    const save = this.#saves.get(step);
    if (save === undefined) throw new Refused(404, `no save of step ${step} is open: PUT its tensors first`);
    if (save.numBusy > 0) throw new Refused(409, `parts of step ${step} are still coming in`);
    return save;
  }

  #giveUpIdle(): void {
    for (const [step, { staged, lastHeardMs, numBusy }] of this.#saves) {
      if (numBusy > 0 || performance.now() - lastHeardMs < this.#idleMs) continue;
      staged.area.release();
      this.#saves.delete(step);
    }
  }
}
