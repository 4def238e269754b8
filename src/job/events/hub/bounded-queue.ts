/** A queue, first in first out, of bounded length: adding to a full one drops the oldest item and counts it. */
export class BoundedQueue<T> {
  readonly #capacity: number;
  #items: T[] = [];
  #head = 0;
  #numDropped = 0;

  /** @param capacity - the most items held, at least 1 */
  constructor(capacity: number) {
    this.#capacity = Math.max(1, capacity);
  }

  get length(): number {
    return this.#items.length - this.#head;
  }

  /** Items dropped since {@link takeNumDropped} was last called. */
  get numDropped(): number {
    return this.#numDropped;
  }

  push(item: T): void {
    if (this.length === this.#capacity) {
      this.shift();
      this.#numDropped++;
    }
    this.#items.push(item);
  }

  /** Removes and returns the oldest item; undefined when there is none. */
  shift(): T | undefined {
    if (this.length === 0) return undefined;
    const item = this.#items[this.#head];
    this.#head++;
    // Moving the rest only when half is gone keeps `shift` cheap and releases removed items soon.
    if (this.#head * 2 >= this.#items.length) {
      this.#items = this.#items.slice(this.#head);
      this.#head = 0;
    }
    return item;
  }

  /** All items, the oldest first. */
  items(): readonly T[] {
    return this.#items.slice(this.#head);
  }

  /** Drops all but the newest `numKept` items, and counts those dropped. */
  keepNewest(numKept: number): void {
    this.#numDropped += Math.max(0, this.length - numKept);
    this.#items = this.#items.slice(Math.max(this.#head, this.#items.length - numKept));
    this.#head = 0;
  }

  /** Returns how many items were dropped since the last call. */
  takeNumDropped(): number {
    const numDropped = this.#numDropped;
    this.#numDropped = 0;
    return numDropped;
  }
}
