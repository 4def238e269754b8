/** First in, first out; every operation but `removeFirst` and `prepend` takes constant time on average. */
export class Queue<T> {
  #items: (T | undefined)[] = [];
  #headIndex = 0;

  get size(): number {
    return this.#items.length - this.#headIndex;
  }

  push(item: T): void {
    this.#items.push(item);
  }

  shift(): T | undefined {
    if (this.#headIndex === this.#items.length) return undefined;
    const item = this.#items[this.#headIndex];
    this.#items[this.#headIndex] = undefined;
    this.#headIndex += 1;
    if (this.#headIndex === this.#items.length) this.#reset();
    else if (this.#headIndex > 1024 && this.#headIndex * 2 > this.#items.length) this.#compact();
    return item;
  }

  /** The oldest item, left where it is. */
  peek(): T | undefined {
    return this.#items[this.#headIndex];
  }

  /** Takes out the oldest item that `matches`, leaving the others in order. */
  removeFirst(matches: (item: T) => boolean): T | undefined {
    for (let index = this.#headIndex; index < this.#items.length; index++) {
      const item = this.#items[index] as T;
      if (!matches(item)) continue;
      if (index === this.#headIndex) return this.shift();
      this.#items.splice(index, 1);
      return item;
    }
    return undefined;
  }

  /** Puts `items` before everything else, keeping their order. */
  prepend(items: readonly T[]): void {
    this.#items = [...items, ...this.#items.slice(this.#headIndex)];
    this.#headIndex = 0;
  }

  /** Takes out everything. */
  drain(): T[] {
    const items = this.#items.slice(this.#headIndex) as T[];
    this.#reset();
    return items;
  }

  #reset(): void {
    this.#items.length = 0;
    this.#headIndex = 0;
  }

  #compact(): void {
    this.#items.splice(0, this.#headIndex);
    this.#headIndex = 0;
  }
}
