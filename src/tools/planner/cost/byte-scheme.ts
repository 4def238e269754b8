/** Bytes per parameter on a rank, for each use, before anything is split. */
export interface ByteScheme {
  /** The value that the model computes with. */
  readonly compute: number;
  /** Its gradient from backward. */
  readonly gradient: number;
  /** Its gradient while it waits for the update, summed over ranks. */
  readonly reducedGradient: number;
  /** Its waiting gradient on a rank that sums with no other: as backward made it, or the sum of several micro-batches. */
  readonly ownGradient: number;
  /** The value that the optimizer updates, if it differs from the one that the model computes with. */
  readonly master: number;
  /** Its optimizer state. */
  readonly optimizer: number;
}

/** The precision of a rank's computation; see {@link byteScheme}. */
export type PlannedPrecision = "fp32" | "bf16" | "fp16" | "amp";

const FLOAT32 = 4;
const HALF = 2;

/**
 * Troupe's own bytes. Masters, moments and reduced gradients are float32; under "amp" the model's parameters are the
 * masters, and autocast's half-precision copies are activations.
 * @param stateTensors - float32 tensors of optimizer state per parameter; 2 for Adam's moments
 * @param accumulation - micro-batches of a step
 */
export function byteScheme(precision: PlannedPrecision, stateTensors = 2, accumulation = 1): ByteScheme {
  const narrow = precision === "bf16" || precision === "fp16";
  const compute = narrow ? HALF : FLOAT32;
  return {
    compute,
    gradient: compute,
    reducedGradient: FLOAT32,
    ownGradient: accumulation === 1 ? compute : FLOAT32,
    master: narrow ? FLOAT32 : 0,
    optimizer: FLOAT32 * stateTensors,
  };
}
