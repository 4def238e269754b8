import type { Down } from "./failure.ts";

/** Called once when the watched incarnation has ended. */
export type OnDown = (down: Down) => void;

/** Whom one actor watches, and whose end it has heard of. Each watch fires exactly once. */
export class Watches {
  readonly #waiting = new Map<number, Set<OnDown>>();
  readonly #ended = new Map<number, Down>();

  /** Registers; returns the end at once when it is known already, and then nothing stays registered. */
  add(uid: number, onDown: OnDown): Down | undefined {
    const down = this.#ended.get(uid);
    if (down !== undefined) return down;
    const watchers = this.#waiting.get(uid);
    if (watchers === undefined) this.#waiting.set(uid, new Set([onDown]));
    else watchers.add(onDown);
    return undefined;
  }

  /** Takes every watch on this actor back; returns whether there was one. */
  remove(uid: number): boolean {
    return this.#waiting.delete(uid);
  }

  /** Enters an end; returns whom to tell, nobody the second time. */
  ended(uid: number, down: Down): readonly OnDown[] {
    if (this.#ended.has(uid)) return [];
    this.#ended.set(uid, down);
    const watchers = this.#waiting.get(uid);
    this.#waiting.delete(uid);
    return watchers === undefined ? [] : [...watchers];
  }

  /** How this actor ended, if it has. */
  endOf(uid: number): Down | undefined {
    return this.#ended.get(uid);
  }
}
