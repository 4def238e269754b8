import type { Down } from "../protocol/failure.ts";

/** Called once when the watched incarnation has ended. */
export type OnDown = (down: Down) => void;

interface DueCall {
  readonly uid: number;
  readonly onDown: OnDown;
  readonly down: Down;
}

/** The actors that one actor watches, the ends it knows of, and the callbacks that are due. Each watch fires exactly once. */
export class Watches {
  readonly #waiting = new Map<number, Set<OnDown>>();
  readonly #ended = new Map<number, Down>();
  #due: DueCall[] = [];
  #onSibling: OnDown | undefined;

  /** Adds a watch. Returns true if the end is known already, so that the call is due at once. */
  add(uid: number, onDown: OnDown): boolean {
    const down = this.#ended.get(uid);
    const watchers = this.#waiting.get(uid);
    if (down !== undefined) this.#due.push({ uid, onDown, down });
    else if (watchers === undefined) this.#waiting.set(uid, new Set([onDown]));
    else watchers.add(onDown);
    return down !== undefined;
  }

  /** Removes every watch on this actor, even if its call is due; returns whether its end was still awaited. */
  remove(uid: number): boolean {
    this.#due = this.#due.filter((call) => call.uid !== uid);
    return this.#waiting.delete(uid);
  }

  /** Records an end that was not known before; returns how many calls have become due. */
  ended(uid: number, down: Down): number {
    const watchers = this.#waiting.get(uid) ?? [];
    const numDueBefore = this.#due.length;
    for (const onDown of watchers) this.#due.push({ uid, onDown, down });
    this.#ended.set(uid, down);
    this.#waiting.delete(uid);
    return this.#due.length - numDueBefore;
  }

  /** Watches for the first of the siblings that ends; fires once. */
  addSiblings(onDown: OnDown): void {
    this.#onSibling = onDown;
  }

  /** Records the end of the first sibling; returns whether a call has become due. */
  siblingEnded(uid: number, down: Down): boolean {
    const onDown = this.#onSibling;
    this.#onSibling = undefined;
    if (onDown !== undefined) this.#due.push({ uid, onDown, down });
    return onDown !== undefined;
  }

  /** Returns how this actor ended, if it has. */
  endOf(uid: number): Down | undefined {
    return this.#ended.get(uid);
  }

  /** Whether any call is due. */
  get hasDue(): boolean {
    return this.#due.length > 0;
  }

  /** Makes the call that has been due for longest, if any; its errors pass through. */
  callNext(): void {
    const next = this.#due.shift();
    next?.onDown(next.down);
  }
}
