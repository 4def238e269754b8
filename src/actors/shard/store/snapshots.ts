import type { SnapshotOrder } from "../../protocols/index.ts";
import { Snapshot } from "./snapshot.ts";

/**
 * The states of one rank's blocks that are being copied: of a step whose save was planned, and of one that a loop has asked for
 * before that step is made.
 */
export class Snapshots {
  /** By the step that they follow. */
  readonly #underWay = new Map<number, Snapshot>();

  /** Begins a snapshot, which replaces an earlier one of the same step. Snapshots of other steps that are copied are removed. */
  begin(order: SnapshotOrder): void {
    for (const [step, snapshot] of this.#underWay) if (snapshot.isDone) this.#underWay.delete(step);
    this.#underWay.get(order.step)?.dispose();
    this.#underWay.set(order.step, new Snapshot(order));
  }

  /** The snapshot of the state after a step. */
  of(step: number): Snapshot | undefined {
    return this.#underWay.get(step);
  }

  /** Snapshots of states that an update of `step` would overwrite. */
  before(step: number): readonly Snapshot[] {
    if (this.#underWay.size === 0) return [];
    return [...this.#underWay.values()].filter((snapshot) => snapshot.step < step);
  }

  /** Frees all snapshots. */
  dispose(): void {
    for (const snapshot of this.#underWay.values()) snapshot.dispose();
    this.#underWay.clear();
  }
}
