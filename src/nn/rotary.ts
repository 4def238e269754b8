import { TroupeError } from "../errors.ts";
import { arange, ops, type Tensor, tensor } from "../tensor/index.ts";

/** How frequencies are stretched for contexts longer than those a model was first trained with. */
export type RotaryScaling =
  | { readonly kind: "default" }
  /** All frequencies divided alike. Chen et al. 2023, https://arxiv.org/abs/2306.15595 */
  | { readonly kind: "linear"; readonly factor: number }
  /** Llama 3.1's: high frequencies stay, low ones are divided, those between are blended. */
  | {
      readonly kind: "llama3";
      readonly factor: number;
      /** Frequencies of fewer turns than this over the original context are divided wholly. */
      readonly lowTurns: number;
      /** Those of more turns than this stay. */
      readonly highTurns: number;
      /** Positions of the original context. */
      readonly numPositions: number;
    };

/** Cosines and sines of the angle of each feature pair at each position, float32 [T, R/2]. */
export interface RotaryAngles {
  readonly cosines: Tensor;
  readonly sines: Tensor;
}

/**
 * The angle, in radians a position, by which each pair of features is turned; rounded to float32 at each step, since
 * angles at far positions show the last bit.
 * @param width - R, features that are turned: even
 * @param theta - base of the geometric series, such as 10000
 * @throws {TroupeError} `MODULE_ARGUMENT` for an odd width or a theta or factor that is not positive
 */
export function rotaryFrequencies(
  width: number,
  theta: number,
  scaling: RotaryScaling = { kind: "default" },
): readonly number[] {
  if (!(Number.isSafeInteger(width) && width >= 2 && width % 2 === 0))
    throw argumentError("an even width of at least 2", width);
  if (!(theta > 0)) throw argumentError("a positive theta", theta);
  if (scaling.kind !== "default" && !(scaling.factor > 0))
    throw argumentError("a positive factor", scaling.factor);
  return Array.from({ length: width / 2 }, (_, pair) => {
    const exponent = Math.fround((2 * pair) / width);
    return scaled(Math.fround(1 / Math.fround(theta ** exponent)), scaling);
  });
}

/** @param frequencies - of {@link rotaryFrequencies} @param length - T: positions `first` to `first` + T − 1 */
export function rotaryAngles(frequencies: readonly number[], length: number, first = 0): RotaryAngles {
  const positions = arange(length, { dtype: "float32" }).add(first).unsqueeze(1); // [T, 1]
  const angles = positions.mul(tensor(frequencies, { dtype: "float32" })); // [T, R/2]
  return { cosines: angles.cos(), sines: angles.sin() };
}

/**
 * Turns feature i < R/2 together with feature i + R/2 by the angles of their position; features behind R pass.
 * @param x - [B, H, T, K], K ≥ R; any strides, any float dtype
 * @returns [B, H, T, K]
 * @see Su et al. 2021, https://arxiv.org/abs/2104.09864
 */
export function rotate(x: Tensor, { cosines, sines }: RotaryAngles): Tensor {
  if (x.dtype !== "float64") return ops.troupe.rotary(x, cosines, sines);
  return explicitRotation(x, { cosines: cosines.to("float64"), sines: sines.to("float64") });
}

/** The same by its definition. */
export function explicitRotation(x: Tensor, { cosines, sines }: RotaryAngles): Tensor {
  const half = cosines.shape[1] ?? 0;
  const [first, second] = [x.narrow(3, 0, half), x.narrow(3, half, half)];
  const rest = x.narrow(3, 2 * half, (x.shape[3] ?? 0) - 2 * half);
  const turned = [first.mul(cosines).sub(second.mul(sines)), second.mul(cosines).add(first.mul(sines))];
  return ops.cat([...turned, rest], 3);
}

// As transformers' `_compute_llama3_parameters`.
function scaled(frequency: number, scaling: RotaryScaling): number {
  if (scaling.kind === "default") return frequency;
  const divided = Math.fround(frequency / scaling.factor);
  if (scaling.kind === "linear") return divided;
  const { lowTurns, highTurns, numPositions } = scaling;
  const wavelength = Math.fround((2 * Math.PI) / frequency);
  if (wavelength < numPositions / highTurns) return frequency;
  if (wavelength > numPositions / lowTurns) return divided;
  const kept = Math.fround(
    Math.fround(Math.fround(numPositions / wavelength) - lowTurns) / (highTurns - lowTurns),
  );
  return Math.fround(Math.fround((1 - kept) * divided) + Math.fround(kept * frequency));
}

function argumentError(expected: string, got: number): TroupeError {
  return new TroupeError(
    "MODULE_ARGUMENT",
    { where: "rotaryFrequencies", expected, got: `${got}` },
    { fields: { got } },
  );
}
