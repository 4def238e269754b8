/** First in, first out, up to a bound: what comes beyond it pushes the oldest out, and is counted. */
export class BoundedQueue<T> {
  readonly #capacity: number;
  #items: T[] = [];
  #head = 0;
  #numDropped = 0;

  /** @param capacity - items held at most, at least 1 */
  constructor(capacity: number) {
    this.#capacity = Math.max(1, capacity);
  }

  get length(): number {
    return this.#items.length - this.#head;
  }

  /** Items pushed out since {@link takeNumDropped} was last called. */
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

  /** The oldest item, taken out; undefined when there is none. */
  shift(): T | undefined {
    if (this.length === 0) return undefined;
    const item = this.#items[this.#head];
    this.#head++;
    // Moving the rest only when half is gone keeps a shift cheap, and what was taken out is not held for long.
    if (this.#head * 2 >= this.#items.length) {
      this.#items = this.#items.slice(this.#head);
      this.#head = 0;
    }
    return item;
  }

  /** All that is held, the oldest first. */
  items(): readonly T[] {
    return this.#items.slice(this.#head);
  }

  /** Drops all but the newest `numKept`, and counts what was dropped. */
  keepNewest(numKept: number): void {
    this.#numDropped += Math.max(0, this.length - numKept);
    this.#items = this.#items.slice(Math.max(this.#head, this.#items.length - numKept));
    this.#head = 0;
  }

  /** How many were pushed out since the last call. */
  takeNumDropped(): number {
    const numDropped = this.#numDropped;
    this.#numDropped = 0;
    return numDropped;
  }
}
