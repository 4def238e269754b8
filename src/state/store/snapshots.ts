import type { SnapshotOrder } from "../../protocols/index.ts";
import { Snapshot } from "./snapshot.ts";

/**
 * The states of one rank's blocks that are being copied: of a step whose save was planned, and of one that a loop has asked for
 * before that step is made.
 */
export class Snapshots {
  /** By the step that they follow. */
  readonly #underWay = new Map<number, Snapshot>();

  /** Of a step it takes the place of the one before; those of other steps go once they are copied. */
  begin(order: SnapshotOrder): void {
    for (const [step, snapshot] of this.#underWay) if (snapshot.isDone) this.#underWay.delete(step);
    this.#underWay.get(order.step)?.dispose();
    this.#underWay.set(order.step, new Snapshot(order));
  }

  /** The one of the state that follows a step. */
  of(step: number): Snapshot | undefined {
    return this.#underWay.get(step);
  }

  /** Those of states that an update of `step` would overwrite. */
  before(step: number): readonly Snapshot[] {
    if (this.#underWay.size === 0) return [];
    return [...this.#underWay.values()].filter((snapshot) => snapshot.step < step);
  }

  /** Nobody wants them any more. */
  dispose(): void {
    for (const snapshot of this.#underWay.values()) snapshot.dispose();
    this.#underWay.clear();
  }
}
