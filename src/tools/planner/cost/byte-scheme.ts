/** Bytes of one parameter in each role it plays on a rank, before anything is split. */
export interface ByteScheme {
  /** What the model computes with. */
  readonly compute: number;
  /** Its gradient as backward makes it. */
  readonly gradient: number;
  /** Its gradient as it waits for the update. */
  readonly reducedGradient: number;
  /** The value that the optimizer updates, where that is not what the model computes with. */
  readonly master: number;
  /** Everything the optimizer remembers of it. */
  readonly optimizer: number;
}

/** What a rank computes in; see {@link byteScheme}. */
export type PlannedPrecision = "fp32" | "bf16" | "fp16" | "amp";

const FLOAT32 = 4;
const HALF = 2;

/**
 * Troupe's own bytes. Masters, moments and reduced gradients are float32; under "amp" the model's parameters are the
 * masters, and the half-precision copies that autocast makes are activations.
 * @param stateTensors - float32 tensors the optimizer keeps of each parameter; 2 for Adam's moments
 */
export function byteScheme(precision: PlannedPrecision, stateTensors = 2): ByteScheme {
  const narrow = precision === "bf16" || precision === "fp16";
  const compute = narrow ? HALF : FLOAT32;
  return {
    compute,
    gradient: compute,
    reducedGradient: FLOAT32,
    master: narrow ? FLOAT32 : 0,
    optimizer: FLOAT32 * stateTensors,
  };
}
