/** Random choices that a seed repeats. */
export class Chance {
  #state: number;

  constructor(seed: number) {
    this.#state = seed >>> 0;
  }

  /** From 0 to below 1: the generator mulberry32, whose 32 bits are plenty to choose among faults. */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let mixed = this.#state;
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }

  /** A whole number from 0 to below `bound`. */
  below(bound: number): number {
    return Math.floor(this.next() * bound);
  }

  /** @throws {Error} where there is nothing to choose from */
  pick<T>(choices: readonly T[]): T {
    if (choices.length === 0) throw new Error("expected something to choose from");
    return choices[this.below(choices.length)] as T;
  }

  /** The time until something happens that happens at random, once in `mean` on average. */
  wait(mean: number): number {
    return -mean * Math.log(1 - this.next());
  }
}
