import { MersenneTwister } from "./mersenne-twister.ts";

/** An array that can be shuffled. */
export interface Shuffled<T> {
  readonly length: number;
  [index: number]: T;
}

/** numpy's legacy `RandomState(seed)`: the same numbers from the same calls in the same order. */
export class RandomState {
  readonly #bits: MersenneTwister;

  /** @param seed - an integer in [0, 2^32) */
  constructor(seed: number) {
    this.#bits = new MersenneTwister(seed);
  }

  /** The next 32 bits of the generator. */
  next(): number {
    return this.#bits.next();
  }

  /** Uniform in [0, 1), with 53 bits. */
  random(): number {
    const high = this.#bits.next() >>> 5;
    const low = this.#bits.next() >>> 6;
    return (high * 67_108_864 + low) / 9_007_199_254_740_992;
  }

  /** An integer in [0, max]; draws until one fits, and draws nothing for max 0. */
  interval(max: number): number {
    if (max === 0) return 0;
    const isWide = max > 0xffff_ffff;
    const top = isWide ? Math.floor(max / 2 ** 32) : max;
    const mask = 2 ** (32 - Math.clz32(top)) - 1;
    for (;;) {
      const high = (this.#bits.next() & mask) >>> 0;
      const value = isWide ? high * 2 ** 32 + this.#bits.next() : high;
      if (value <= max) return value;
    }
  }

  /** An integer in [low, high). */
  randint(low: number, high: number): number {
    return low + this.interval(high - 1 - low);
  }

  /** Shuffles `items` in place. */
  shuffle<T>(items: Shuffled<T>): void {
    for (let i = items.length - 1; i > 0; i--) {
      const j = this.interval(i);
      const moved = items[i] as T;
      items[i] = items[j] as T;
      items[j] = moved;
    }
  }

  /** Draws an outcome by its probability; they need not sum to 1. */
  choice(probabilities: readonly number[]): number {
    const cumulative: number[] = [];
    for (const probability of probabilities) cumulative.push((cumulative.at(-1) ?? 0) + probability);
    const total = cumulative.at(-1) as number;
    const drawn = this.random();
    const index = cumulative.findIndex((sum) => sum / total > drawn);
    return index < 0 ? probabilities.length - 1 : index;
  }

  /** Number of trials up to the first success of probability `p` < 1/3. */
  geometric(p: number): number {
    return Math.ceil(Math.log1p(-this.random()) / Math.log(1 - p));
  }
}

/** Python's `round`: to the nearest whole number, halves to the even one. */
export function roundHalfEven(value: number): number {
  const low = Math.floor(value);
  const rest = value - low;
  if (rest !== 0.5) return Math.round(value);
  return low % 2 === 0 ? low : low + 1;
}
