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
 * function of (seed, step, micro-batch, module name, element) alone, so running a block again draws the same, and so
 * does every placement, thread count and ZeRO level.
 */
export class Randomness {
  readonly seed: number;
  /** Optimizer step the forward belongs to. */
  step = 0;
  /** Place of this micro-batch in the whole batch of the step, counted over all ranks, so that one rank which
   * accumulates twice draws what two ranks draw. */
  microBatch = 0;

  constructor(seed: number) {
    this.seed = seed;
  }

  /** The stream of a named draw at the present step and micro-batch; element i of the draw is element i of it. */
  stream(name: string): number {
    return streamOf(`${name}@${this.step}.${this.microBatch}`);
  }
}
