import type { SavePart, SnapshotProtocol } from "../../protocols/index.ts";
import { releaseRef } from "../../tensor/index.ts";
import { PartCollection } from "./part-collection.ts";

/**
 * Collects the parts of one save at a time, the newest that its rank group sends; parts may come before the order to save
 * them. Owns their tensors.
 */
export class PartCollector implements Disposable {
  #newest = new PartCollection(0, -1);

  /** A new generation of the rank group: what earlier ones have not sent never comes. */
  begin(generation: number): void {
    // Its parts overtake this word where they come first to a thread that gives way to others: they are kept.
    if (generation > this.#newest.generation) this.of(generation, -1);
  }

  /** The parts of this save; those of any other are given up. */
  of(generation: number, step: number): PartCollection {
    const newest = this.#newest;
    if (newest.generation === generation && newest.step === step) return newest;
    newest.abandon();
    this.#newest = new PartCollection(generation, step);
    return this.#newest;
  }

  add(part: SavePart): void {
    if (part.generation < this.#newest.generation) for (const { ref } of part.state) releaseRef(ref);
    else this.of(part.generation, part.step).add(part);
  }

  setProgress({ generation, step, progress }: SnapshotProtocol["progress"]["in"]): void {
    if (generation >= this.#newest.generation) this.of(generation, step).setProgress(progress);
  }

  /** That save is over. The same step may be saved once more, for instance to the disk after a copy in memory. */
  close(collection: PartCollection): void {
    if (this.#newest === collection) this.#newest = new PartCollection(collection.generation, -1);
  }

  /** Nothing is saved any more. */
  [Symbol.dispose](): void {
    this.#newest.abandon();
  }
}
