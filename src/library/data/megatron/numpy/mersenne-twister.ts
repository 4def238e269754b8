const size = 624;
const shift = 397;

/**
 * MT19937, the generator of numpy's `RandomState`, C++'s `std::mt19937` and torch's CPU generator, number for number.
 * @see Matsumoto, Nishimura 1998, https://doi.org/10.1145/272991.272995
 */
export class MersenneTwister {
  readonly #state = new Uint32Array(size);
  #at = size;

  /** @param seed - only its low 32 bits are used */
  constructor(seed: number) {
    const state = this.#state;
    state[0] = seed >>> 0;
    for (let i = 1; i < size; i++) {
      const before = state[i - 1] as number;
      state[i] = Math.imul(1_812_433_253, before ^ (before >>> 30)) + i;
    }
  }

  /** The next 32 bits. */
  next(): number {
    if (this.#at === size) this.#twist();
    let y = this.#state[this.#at++] as number;
    y ^= y >>> 11;
    y ^= (y << 7) & 0x9d2c_5680;
    y ^= (y << 15) & 0xefc6_0000;
    return (y ^ (y >>> 18)) >>> 0;
  }

  #twist(): void {
    const state = this.#state;
    for (let i = 0; i < size; i++) {
      const y = ((state[i] as number) & 0x8000_0000) | ((state[(i + 1) % size] as number) & 0x7fff_ffff);
      state[i] = (state[(i + shift) % size] as number) ^ (y >>> 1) ^ ((y & 1) === 0 ? 0 : 0x9908_b0df);
    }
    this.#at = 0;
  }
}

const size64 = 312;
const shift64 = 156;
const bits64 = (1n << 64n) - 1n;

/** MT19937-64, the generator of C++'s `std::mt19937_64`, number for number. */
export class MersenneTwister64 {
  readonly #state = new BigUint64Array(size64);
  #at = size64;

  constructor(seed: bigint) {
    const state = this.#state;
    state[0] = seed & bits64;
    for (let i = 1; i < size64; i++) {
      const before = state[i - 1] as bigint;
      state[i] = (6_364_136_223_846_793_005n * (before ^ (before >> 62n)) + BigInt(i)) & bits64;
    }
  }

  /** The next 64 bits. */
  next(): bigint {
    if (this.#at === size64) this.#twist();
    let y = this.#state[this.#at++] as bigint;
    y ^= (y >> 29n) & 0x5555_5555_5555_5555n;
    y ^= (y << 17n) & 0x71d6_7fff_eda6_0000n;
    y ^= (y << 37n) & 0xfff7_eee0_0000_0000n;
    return (y ^ (y >> 43n)) & bits64;
  }

  #twist(): void {
    const state = this.#state;
    for (let i = 0; i < size64; i++) {
      const y =
        ((state[i] as bigint) & 0xffff_ffff_8000_0000n) |
        ((state[(i + 1) % size64] as bigint) & 0x7fff_ffffn);
      const odd = (y & 1n) === 0n ? 0n : 0xb502_6f5a_a966_19e9n;
      state[i] = (state[(i + shift64) % size64] as bigint) ^ (y >> 1n) ^ odd;
    }
    this.#at = 0;
  }
}
