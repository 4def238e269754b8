import type { SavedProgress } from "../../../compute/optim/index.ts";
import { attach, hold } from "../../../compute/tensor/index.ts";
import { TroupeError } from "../../../errors/index.ts";
import type { SavePart } from "../../protocols/index.ts";
import { StateImage } from "./state-image.ts";

/** The parts of one save as they come in. Owns their tensors until its image is taken or it is disposed. */
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
    // A save that has failed wants no more of them.
    for (const each of values) this.#image === undefined ? each.values.dispose() : this.#image.add(each);
    this.#numParts += 1;
    this.#blockedMs.set(part.rank, (this.#blockedMs.get(part.rank) ?? 0) + part.blockedMs);
    this.#wake();
  }

  /** How far the optimizer has come. */
  setProgress(progress: SavedProgress): void {
    this.#progress = progress;
    this.#wake();
  }

  /** For how long the copying of what has come held that rank up that was held up most. */
  get blockedMs(): number {
    return Math.max(0, ...this.#blockedMs.values());
  }

  /** What has come so far. */
  get image(): StateImage {
    if (this.#image === undefined) throw abandoned(this.step);
    return this.#image;
  }

  /**
   * Resolves when what has come makes something so.
   * @throws {TroupeError} `CHECKPOINT_ABANDONED` when nothing comes any more
   */
  async until(isSo: () => boolean): Promise<void> {
    for (;;) {
      if (this.#abandoned) throw abandoned(this.step);
      if (isSo()) return;
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    }
  }

  /** How many parts have come. */
  get numParts(): number {
    return this.#numParts;
  }

  /** How far the optimizer has come, once that is known. */
  get progress(): SavedProgress | undefined {
    return this.#progress;
  }

  /** Resolves with how far the optimizer is when everything has come. @throws as {@link until} */
  async whole(numParts: number): Promise<SavedProgress> {
    await this.until(() => this.#numParts >= numParts && this.#progress !== undefined);
    return this.#progress as SavedProgress;
  }

  /** Gives the image away: it is the caller's. */
  take(): StateImage {
    const { image } = this;
    this.#image = undefined;
    return image;
  }

  /** Nobody will send the parts that are missing. */
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

/** What becomes of a save whose rank group ends before it is whole. */
export function abandoned(step: number): TroupeError {
  return new TroupeError(
    "CHECKPOINT_ABANDONED",
    {
      where: "checkpoint",
      expected: `every part of step ${step}`,
      got: "a restart of the rank group before they had come",
      hint: "the next save is whole",
    },
    { fields: { step } },
  );
}
