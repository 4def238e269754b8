/** FNV's offset basis and the lower half of its prime, whose upper half is 2^40. */
const OFFSET_HIGH = 0xcbf29ce4;
const OFFSET_LOW = 0x84222325;
const PRIME_LOW = 0x1b3;

/**
 * Returns the Philox stream of a text: FNV-1a (64 bit) over its UTF-8 bytes, folded to 53 bits so that a JavaScript number
 * holds it. It must never change, because initial values and masks of runs depend on it.
 * @see http://www.isthe.com/chongo/tech/comp/fnv/
 */
export function streamOf(text: string): number {
  let high = OFFSET_HIGH;
  let low = OFFSET_LOW;
  // In two halves of 32 bits: each step draws, and as a BigInt a byte takes a hundred times as long.
  for (const byte of new TextEncoder().encode(text)) {
    low = (low ^ byte) >>> 0;
    const product = low * PRIME_LOW;
    high = (high * PRIME_LOW + Math.floor(product / 2 ** 32) + ((low << 8) >>> 0)) >>> 0;
    low = product >>> 0;
  }
  return (high & 0x1fffff) * 2 ** 32 + ((low ^ (high >>> 21)) >>> 0);
}

/**
 * The state of a model's random draws: the engine that runs the steps sets it, modules that draw read it. A draw depends only
 * on seed, step, micro-batch, module name, the number of earlier draws of that name in the forward pass, and element. Thus
 * every placement, thread count and ZeRO level draws the same, and so does a block that is recomputed through {@link
 * Randomness.drawnOnce}.
 */
export class Randomness {
  readonly seed: number;
  #step = 0;
  #microBatch = 0;
  /** Draws made since {@link restart}, by name. */
  #numDraws = new Map<string, number>();
  #listen: ((name: string, stream: number) => void) | undefined;

  constructor(seed: number) {
    this.seed = seed;
  }

  /** Optimizer step of the forward; setting it resets the count of draws. */
  get step(): number {
    return this.#step;
  }

  set step(step: number) {
    this.#step = step;
    this.restart();
  }

  /**
   * Index of this micro-batch in the batch of the step, counted over all ranks, so that one rank that accumulates twice draws
   * the same as two ranks. Setting it resets the count of draws.
   */
  get microBatch(): number {
    return this.#microBatch;
  }

  set microBatch(microBatch: number) {
    this.#microBatch = microBatch;
    this.restart();
  }

  /** Resets the count of draws, at the beginning of a forward pass. */
  restart(): void {
    this.#numDraws = new Map();
  }

  /** Returns the stream of the next draw of this name; element i of the draw is element i of the stream. */
  nextStream(name: string): number {
    const index = this.#numDraws.get(name) ?? 0;
    this.#numDraws.set(name, index + 1);
    const draw = index === 0 ? name : `${name}#${index}`;
    const stream = streamOf(`${draw}@${this.#step}.${this.#microBatch}`);
    this.#listen?.(name, stream);
    return stream;
  }

  /** Runs `body` and tells its draws in order. */
  listening<R>(listen: (name: string, stream: number) => void, body: () => R): R {
    const before = this.#listen;
    this.#listen = listen;
    try {
      return body();
    } finally {
      this.#listen = before;
    }
  }

  /** Returns the draws made since {@link restart}, by name. */
  drawn(): ReadonlyMap<string, number> {
    return new Map(this.#numDraws);
  }

  /** Runs `body` as if only those draws had been made before it. @param drawn - as `drawn()` gives them */
  drawnFrom<R>(drawn: ReadonlyMap<string, number>, body: () => R): R {
    const after = this.#numDraws;
    this.#numDraws = new Map(drawn);
    try {
      return body();
    } finally {
      this.#numDraws = after;
    }
  }

  /** Wraps `run` so that later calls repeat the draws of the first one, and are not counted. */
  drawnOnce<Args extends readonly unknown[], R>(run: (...args: Args) => R): (...args: Args) => R {
    let before: ReadonlyMap<string, number> | undefined;
    return (...args) => {
      if (before === undefined) {
        before = new Map(this.#numDraws);
        return run(...args);
      }
      return this.drawnFrom(before, () => run(...args));
    };
  }
}
