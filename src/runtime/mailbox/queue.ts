const leastCapacity = 16;

/** A first-in, first-out queue in a growing ring buffer: `push` and `shift` rarely allocate or move anything. */
export class Queue<T> {
  #ring: (T | undefined)[] = new Array<T | undefined>(leastCapacity).fill(undefined);
  #headIndex = 0;
  #size = 0;

  get size(): number {
    return this.#size;
  }

  push(item: T): void {
    if (this.#size === this.#ring.length) this.#refill(this.#inOrder(), 2 * this.#ring.length);
    this.#ring[this.#place(this.#size)] = item;
    this.#size += 1;
  }

  shift(): T | undefined {
    if (this.#size === 0) return undefined;
    const item = this.#ring[this.#headIndex];
    this.#ring[this.#headIndex] = undefined;
    this.#headIndex = this.#place(1);
    this.#size -= 1;
    return item;
  }

  /** Removes and returns the oldest item that `matches`; the others keep their order. */
  removeFirst(matches: (item: T) => boolean): T | undefined {
    const items = this.#inOrder();
    const index = items.findIndex(matches);
    if (index < 0) return undefined;
    if (index === 0) return this.shift();
    const [item] = items.splice(index, 1);
    this.#refill(items, this.#ring.length);
    return item;
  }

  /** Removes and returns all items. */
  drain(): T[] {
    const items = this.#inOrder();
    this.#refill([], leastCapacity);
    return items;
  }

  /** Index of the item `offset` behind the head; capacities are powers of two. */
  #place(offset: number): number {
    return (this.#headIndex + offset) & (this.#ring.length - 1);
  }

  #inOrder(): T[] {
    return Array.from({ length: this.#size }, (_, offset) => this.#ring[this.#place(offset)] as T);
  }

  #refill(items: readonly T[], capacity: number): void {
    let fitting = capacity;
    while (fitting < items.length) fitting *= 2;
    const ring: (T | undefined)[] = new Array<T | undefined>(fitting).fill(undefined);
    for (const [index, item] of items.entries()) ring[index] = item;
    this.#ring = ring;
    this.#headIndex = 0;
    this.#size = items.length;
  }
}
