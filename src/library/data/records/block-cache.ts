import type { Awaitable } from "../dataset.ts";

/** The most blocks that are read at once. */
const MOST_AT_ONCE = 16;

/** Options of {@link BlockCache}. */
export interface BlockCacheOptions<T> {
  readonly read: (block: number) => Awaitable<T>;
  readonly sizeOf: (block: number) => number;
  readonly mostBytes: number;
}

/** Blocks that were read lately, each read once however many ask for it. */
export class BlockCache<T> {
  readonly #read: (block: number) => Awaitable<T>;
  readonly #sizeOf: (block: number) => number;
  readonly #mostBytes: number;
  #numBytes = 0;
  readonly #kept = new Map<number, Promise<T> | { readonly value: T }>();
  readonly #waiting: (() => void)[] = [];
  #numReading = 0;

  /** Keeps at most `mostBytes` of blocks; of more, those that were longest not used are dropped. */
  constructor({ read, sizeOf, mostBytes }: BlockCacheOptions<T>) {
    this.#read = read;
    this.#sizeOf = sizeOf;
    this.#mostBytes = mostBytes;
  }

  /** Returns a block, at once if it was read before. Asking again after an error tries again. */
  get(block: number): Awaitable<T> {
    const known = this.#kept.get(block);
    if (known !== undefined) {
      this.#kept.delete(block);
      this.#kept.set(block, known);
      return known instanceof Promise ? known : known.value;
    }
    const reading = this.#take(block);
    this.#kept.set(block, reading);
    this.#numBytes += this.#sizeOf(block);
    for (const [oldest] of this.#kept) {
      if (this.#numBytes <= this.#mostBytes || oldest === block) break;
      this.#drop(oldest);
    }
    reading.then(
      (value) => this.#kept.get(block) === reading && this.#kept.set(block, { value }),
      () => this.#kept.get(block) === reading && this.#drop(block),
    );
    return reading;
  }

  #drop(block: number): void {
    this.#kept.delete(block);
    this.#numBytes -= this.#sizeOf(block);
  }

  async #take(block: number): Promise<T> {
    // The place of one that ends passes to the next in line.
    if (this.#numReading < MOST_AT_ONCE) this.#numReading++;
    else await new Promise<void>((resolve) => void this.#waiting.push(resolve));
    try {
      return await this.#read(block);
    } finally {
      const next = this.#waiting.shift();
      if (next === undefined) this.#numReading--;
      else next();
    }
  }
}
