import type { Awaitable } from "../dataset.ts";

/** The most blocks that are read at once. */
const MOST_AT_ONCE = 16;

/** Blocks that were read lately, each read once however many ask for it. */
export class BlockCache<T> {
  readonly #read: (block: number) => Awaitable<T>;
  readonly #most: number;
  readonly #kept = new Map<number, Promise<T> | { readonly value: T }>();
  readonly #waiting: (() => void)[] = [];
  #numReading = 0;

  /** @param most - blocks kept; of more the one that was longest not used is dropped */
  constructor(read: (block: number) => Awaitable<T>, most: number) {
    this.#read = read;
    this.#most = most;
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
    reading.then(
      (value) => this.#kept.get(block) === reading && this.#kept.set(block, { value }),
      () => this.#kept.get(block) === reading && this.#kept.delete(block),
    );
    if (this.#kept.size > this.#most) this.#kept.delete(this.#kept.keys().next().value as number);
    return reading;
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
