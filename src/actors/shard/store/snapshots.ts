import type { SnapshotOrder } from "../../protocols/index.ts";
import { Snapshot } from "./snapshot.ts";

/** Snapshots of one rank's blocks under way: a planned one, and one that a loop has asked for before that step is made. */
export class Snapshots {
  /** By the step that they follow. */
  readonly #underWay = new Map<number, Snapshot>();

  /** Begins a snapshot, in place of an earlier one of the same step. Finished snapshots are removed. */
  begin(order: SnapshotOrder): void {
    for (const [step, snapshot] of this.#underWay) if (snapshot.isDone) this.#underWay.delete(step);
    this.#underWay.get(order.step)?.dispose();
    this.#underWay.set(order.step, new Snapshot(order));
  }

  of(step: number): Snapshot | undefined {
    return this.#underWay.get(step);
  }

  /** Snapshots of states that the update of `step` would overwrite. */
  before(step: number): readonly Snapshot[] {
    if (this.#underWay.size === 0) return [];
    return [...this.#underWay.values()].filter((snapshot) => snapshot.step < step);
  }

  dispose(): void {
    for (const snapshot of this.#underWay.values()) snapshot.dispose();
    this.#underWay.clear();
  }
}
