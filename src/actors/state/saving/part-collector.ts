import { releaseRef } from "../../../compute/tensor/index.ts";
import type { SavePart, SnapshotProtocol } from "../../protocols/index.ts";
import { PartCollection } from "./part-collection.ts";

/** One planned save, one requested by each of two ranks a step apart, and a failed one whose parts still arrive. */
const MOST_UNDER_WAY = 4;

/**
 * Collects the parts of the saves that its rank group sends: one that was planned, and beside it those that a loop requests
 * before that step is made. Parts may come before the order to save them. Owns their tensors.
 */
export class PartCollector implements Disposable {
  #generation = 0;
  /** By step, in the order in which they began. */
  readonly #underWay = new Map<number, PartCollection>();

  /** Begins a new generation of the rank group: missing parts of earlier ones never come. */
  begin(generation: number): void {
    // Its parts may overtake this message in a thread of lower priority: they are kept.
    if (generation > this.#generation) this.#enter(generation);
  }

  /** The parts of this save. Drops those of earlier generations, and the oldest if there are too many saves. */
  of(generation: number, step: number): PartCollection {
    if (generation !== this.#generation) this.#enter(generation);
    const known = this.#underWay.get(step);
    if (known !== undefined) return known;
    const collection = new PartCollection(generation, step);
    this.#underWay.set(step, collection);
    for (const [oldest, given] of this.#underWay) {
      if (this.#underWay.size <= MOST_UNDER_WAY) break;
      given.abandon();
      this.#underWay.delete(oldest);
    }
    return collection;
  }

  add(part: SavePart): void {
    if (part.generation < this.#generation) for (const { ref } of part.state) releaseRef(ref);
    else this.of(part.generation, part.step).add(part);
  }

  setProgress({ generation, step, progress }: SnapshotProtocol["progress"]["in"]): void {
    if (generation >= this.#generation) this.of(generation, step).setProgress(progress);
  }

  /** Ends a save. The same step may be saved once more, for instance to the disk after a copy in memory. */
  close(collection: PartCollection): void {
    if (this.#underWay.get(collection.step) === collection) this.#underWay.delete(collection.step);
  }

  [Symbol.dispose](): void {
    for (const collection of this.#underWay.values()) collection.abandon();
    this.#underWay.clear();
  }

  #enter(generation: number): void {
    this[Symbol.dispose]();
    this.#generation = generation;
  }
}
