import type { Down } from "../protocol/failure.ts";

/** Called once when the watched incarnation has ended. */
export type OnDown = (down: Down) => void;

interface DueCall {
  readonly uid: number;
  readonly onDown: OnDown;
  readonly down: Down;
}

/** Whom one actor watches, whose end it has heard of, and who is yet to be called for it. Each watch fires exactly once. */
export class Watches {
  readonly #waiting = new Map<number, Set<OnDown>>();
  readonly #ended = new Map<number, Down>();
  #due: DueCall[] = [];
  #onSibling: OnDown | undefined;

  /** Registers; where the end is known already the call is due at once. Returns whether it is. */
  add(uid: number, onDown: OnDown): boolean {
    const down = this.#ended.get(uid);
    const watchers = this.#waiting.get(uid);
    if (down !== undefined) this.#due.push({ uid, onDown, down });
    else if (watchers === undefined) this.#waiting.set(uid, new Set([onDown]));
    else watchers.add(onDown);
    return down !== undefined;
  }

  /** Takes every watch on this actor back, also where its call is due; returns whether its end was waited for. */
  remove(uid: number): boolean {
    this.#due = this.#due.filter((call) => call.uid !== uid);
    return this.#waiting.delete(uid);
  }

  /** Enters an end that is not known yet; returns how many calls have become due. */
  ended(uid: number, down: Down): number {
    const watchers = this.#waiting.get(uid) ?? [];
    const numDueBefore = this.#due.length;
    for (const onDown of watchers) this.#due.push({ uid, onDown, down });
    this.#ended.set(uid, down);
    this.#waiting.delete(uid);
    return this.#due.length - numDueBefore;
  }

  /** Registers for the first of the siblings that ends, once. */
  addSiblings(onDown: OnDown): void {
    this.#onSibling = onDown;
  }

  /** The first of them has ended; returns whether a call has become due. */
  siblingEnded(uid: number, down: Down): boolean {
    const onDown = this.#onSibling;
    this.#onSibling = undefined;
    if (onDown !== undefined) this.#due.push({ uid, onDown, down });
    return onDown !== undefined;
  }

  /** How this actor ended, if it has. */
  endOf(uid: number): Down | undefined {
    return this.#ended.get(uid);
  }

  /** Whether any call is due. */
  get hasDue(): boolean {
    return this.#due.length > 0;
  }

  /** Makes the call that has been due for longest, if any; what it throws passes through. */
  callNext(): void {
    const next = this.#due.shift();
    next?.onDown(next.down);
  }
}
