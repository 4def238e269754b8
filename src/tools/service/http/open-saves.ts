import { Refused } from "../../../job/http.ts";
import type { CheckpointService } from "../checkpoint-service.ts";
import type { StagedSave } from "../staged-save.ts";

interface OpenSave {
  readonly staged: StagedSave;
  lastHeardMs: number;
  /** Requests that are sending parts now. */
  numBusy: number;
}

const maxOpen = 16;

/** The saves in progress of all clients, by step. A save without a request for `idleMs` is dropped with its memory. */
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

  get steps(): number[] {
    return [...this.#saves.keys()];
  }

  /** Runs `work` on the save of a step; opens it if needed. @throws {Refused} 503 if too many are open */
  async use<T>(step: number, work: (staged: StagedSave) => Promise<T>): Promise<T> {
    const known = this.#saves.get(step);
    if (known === undefined && this.#saves.size === maxOpen)
      throw new Refused(503, `${maxOpen} saves are open: commit or delete one`, { "retry-after": "10" });
    const save = known ?? { staged: this.#service.stage(step), lastHeardMs: performance.now(), numBusy: 0 };
    this.#saves.set(step, save);
    save.numBusy += 1;
    try {
      return await work(save.staged);
    } finally {
      save.numBusy -= 1;
      save.lastHeardMs = performance.now();
    }
  }

  /** Removes the save of a step, for writing. @throws {Refused} 404 if there is none, 409 while parts are arriving */
  take(step: number): StagedSave {
    const save = this.#quiet(step);
    // An incomplete save throws here and stays open for its missing parts.
    save.staged.complete();
    this.#saves.delete(step);
    return save.staged;
  }

  /** Drops the save of a step. @throws {Refused} as {@link take} */
  giveUp(step: number): void {
    this.#quiet(step).staged.area.release();
    this.#saves.delete(step);
  }

  /** Drops all saves. */
  close(): void {
    clearInterval(this.#sweeper);
    for (const { staged } of this.#saves.values()) staged.area.release();
    this.#saves.clear();
  }

  #quiet(step: number): OpenSave {
    const save = this.#saves.get(step);
    if (save === undefined) throw new Refused(404, `no save of step ${step} is open: PUT its tensors first`);
    if (save.numBusy > 0) throw new Refused(409, `parts of step ${step} are still arriving`);
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
