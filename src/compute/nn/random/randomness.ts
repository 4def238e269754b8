const FNV_OFFSET = 0xcbf29ce484222325n;
const FNV_PRIME = 0x100000001b3n;

/**
 * The Philox stream of a text: FNV-1a (64 bit) over its UTF-8 bytes, folded to 53 bits so that a JavaScript number
 * holds it. Stable for ever: a checkpoint's initial values and masks depend on it.
 * @see http://www.isthe.com/chongo/tech/comp/fnv/
 */
export function streamOf(text: string): number {
  let hash = FNV_OFFSET;
  for (const byte of new TextEncoder().encode(text)) {
    hash = BigInt.asUintN(64, (hash ^ BigInt(byte)) * FNV_PRIME);
  }
  return Number((hash >> 53n) ^ BigInt.asUintN(53, hash));
}

/**
 * The clock of a model's random draws: held by whoever runs the steps, read by the modules that draw. A draw is a
 * function of (seed, step, micro-batch, module name, how many draws of that name the forward pass made before, element)
 * alone, so every placement, thread count and ZeRO level draws the same, and so does a block that is run again through
 * {@link Randomness.drawnOnce}.
 */
export class Randomness {
  readonly seed: number;
  #step = 0;
  #microBatch = 0;
  /** Draws made since {@link restart}, by name. */
  #numDraws = new Map<string, number>();

  constructor(seed: number) {
    this.seed = seed;
  }

  /** Optimizer step the forward belongs to; setting it restarts the count of draws. */
  get step(): number {
    return this.#step;
  }

  set step(step: number) {
    this.#step = step;
    this.restart();
  }

  /**
   * Place of this micro-batch in the whole batch of the step, counted over all ranks, so that one rank which accumulates
   * twice draws what two ranks draw. Setting it restarts the count of draws.
   */
  get microBatch(): number {
    return this.#microBatch;
  }

  set microBatch(microBatch: number) {
    this.#microBatch = microBatch;
    this.restart();
  }

  /** A forward pass begins: the next draw of every name is its first one. */
  restart(): void {
    this.#numDraws = new Map();
  }

  /** The stream of the next draw of that name; element i of the draw is element i of it. */
  nextStream(name: string): number {
    const index = this.#numDraws.get(name) ?? 0;
    this.#numDraws.set(name, index + 1);
    const draw = index === 0 ? name : `${name}#${index}`;
    return streamOf(`${draw}@${this.#step}.${this.#microBatch}`);
  }

  /** @returns `run`, of which a second call draws what the first one did, and counts for nothing */
  drawnOnce<Args extends readonly unknown[], R>(run: (...args: Args) => R): (...args: Args) => R {
    let before: ReadonlyMap<string, number> | undefined;
    return (...args) => {
      if (before === undefined) {
        before = new Map(this.#numDraws);
        return run(...args);
      }
      const after = this.#numDraws;
      this.#numDraws = new Map(before);
      try {
        return run(...args);
      } finally {
        this.#numDraws = after;
      }
    };
  }
}
