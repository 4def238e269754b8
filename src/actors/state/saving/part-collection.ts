import type { SavedProgress } from "../../../compute/optim/index.ts";
import { attach, hold } from "../../../compute/tensor/index.ts";
import { TroupeError } from "../../../errors/index.ts";
import type { SavePart } from "../../protocols/index.ts";
import { StateImage } from "./state-image.ts";

/** The parts of one save as they arrive. Owns their tensors until its image is taken or it is disposed. */
export class PartCollection implements Disposable {
  readonly generation: number;
  readonly step: number;
  #image: StateImage | undefined = new StateImage();
  #progress: SavedProgress | undefined;
  #numParts = 0;
  readonly #blockedMs = new Map<number, number>();
  #abandoned = false;
  #waiting: (() => void)[] = [];

  constructor(generation: number, step: number) {
    this.generation = generation;
    this.step = step;
  }

  add(part: SavePart): void {
    const values = part.state.map(({ kind, pieces, ref }) => ({
      kind,
      pieces,
      values: hold(() => attach(ref)),
    }));
    // A failed save drops further parts.
    for (const each of values) this.#image === undefined ? each.values.dispose() : this.#image.add(each);
    this.#numParts += 1;
    this.#blockedMs.set(part.rank, (this.#blockedMs.get(part.rank) ?? 0) + part.blockedMs);
    this.#wake();
  }

  setProgress(progress: SavedProgress): void {
    this.#progress = progress;
    this.#wake();
  }

  /** The longest time for which copying held up one rank. */
  get blockedMs(): number {
    return Math.max(0, ...this.#blockedMs.values());
  }

  get image(): StateImage {
    if (this.#image === undefined) throw abandoned(this.step);
    return this.#image;
  }

  /** Resolves when new parts make `isSo` true. @throws {TroupeError} `CHECKPOINT_ABANDONED` when no more parts come */
  async until(isSo: () => boolean): Promise<void> {
    for (;;) {
      if (this.#abandoned) throw abandoned(this.step);
      if (isSo()) return;
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    }
  }

  get numParts(): number {
    return this.#numParts;
  }

  get progress(): SavedProgress | undefined {
    return this.#progress;
  }

  /** Resolves with the optimizer's progress when everything has arrived. @throws as {@link until} */
  async complete(numParts: number): Promise<SavedProgress> {
    await this.until(() => this.#numParts >= numParts && this.#progress !== undefined);
    return this.#progress as SavedProgress;
  }

  /** Gives the image away: it is the caller's. */
  take(): StateImage {
    const { image } = this;
    this.#image = undefined;
    return image;
  }

  /** Ends the save: the missing parts will not come. */
  abandon(): void {
    this.#abandoned = true;
    this[Symbol.dispose]();
    this.#wake();
  }

  [Symbol.dispose](): void {
    this.#image?.[Symbol.dispose]();
    this.#image = undefined;
  }

  #wake(): void {
    for (const wake of this.#waiting.splice(0)) wake();
  }
}

/** The error of a save whose rank group ends before it is complete. */
export function abandoned(step: number): TroupeError {
  return new TroupeError("CHECKPOINT_ABANDONED", {
    where: "checkpoint",
    expected: `every part of step ${step}`,
    got: "a restart of the rank group before they had come",
    hint: "the next save will be complete",
    fields: { step },
  });
}
