import { arange, ops, type Tensor, tensor } from "../../tensor/index.ts";
import { argumentError } from "../argument-error.ts";
import { isFused } from "../fusion.ts";

/** Scaling of rotary frequencies for contexts longer than the original one. */
export type RotaryScaling =
  | { readonly kind: "default" }
  /** The base grows with the length from the original context on: transformers' dynamic NTK scaling. */
  | {
      readonly kind: "dynamic";
      readonly factor: number;
      /** Positions of the original context. */
      readonly numPositions: number;
    }
  /** Each frequency is divided by its own number, from the list `short` within the original context and from `long` beyond it. */
  | {
      readonly kind: "longrope";
      readonly short: readonly number[];
      readonly long: readonly number[];
      /** Positions of the original context. */
      readonly numPositions: number;
      /** Factor on cosines and sines. */
      readonly attentionFactor: number;
    }
  /**
   * High frequencies stay, low ones are divided, those between are blended by their index. Peng et al. 2023,
   * https://arxiv.org/abs/2309.00071
   */
  | {
      readonly kind: "yarn";
      readonly factor: number;
      /** Positions of the original context. */
      readonly numPositions: number;
      /** Frequencies with more turns than this over the original context stay. */
      readonly fastTurns: number;
      /** Frequencies with fewer turns than this are divided by the full factor. */
      readonly slowTurns: number;
      /** Whether the indices between which frequencies are blended are rounded to integers. */
      readonly truncated: boolean;
      /** Factor on cosines and sines. */
      readonly attentionFactor: number;
    }
  /** All frequencies are divided by one factor. Chen et al. 2023, https://arxiv.org/abs/2306.15595 */
  | { readonly kind: "linear"; readonly factor: number }
  /** Llama 3.1's: high frequencies stay, low ones are divided, those between are blended. */
  | {
      readonly kind: "llama3";
      readonly factor: number;
      /** Frequencies with fewer turns than this over the original context are divided by the full factor. */
      readonly lowTurns: number;
      /** Frequencies with more turns than this stay. */
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
 * Returns the angle by which each pair of features is rotated, in radians per position. Each step is rounded to float32,
 * because angles at far positions show the last bit.
 * @param width - R, the number of rotated features: even
 * @param theta - base of the geometric series, such as 10000
 * @param length - positions of the text, for the kinds "dynamic" and "longrope"
 * @throws {TroupeError} `MODULE_ARGUMENT` for an odd width or a theta or factor that is not positive
 */
export function rotaryFrequencies(
  width: number,
  theta: number,
  scaling: RotaryScaling = { kind: "default" },
  length = 0,
): readonly number[] {
  if (!(Number.isSafeInteger(width) && width >= 2 && width % 2 === 0))
    throw argumentError("rotaryFrequencies", "an even width of at least 2", width);
  if (!(theta > 0)) throw argumentError("rotaryFrequencies", "a positive theta", theta);
  if ("factor" in scaling && !(scaling.factor > 0))
    throw argumentError("rotaryFrequencies", "a positive factor", scaling.factor);
  const base = scaling.kind === "dynamic" ? grownBase(width, theta, scaling, length) : theta;
  const divisors = scaling.kind === "longrope" ? ownDivisors(width, scaling, length) : undefined;
  const ramp = scaling.kind === "yarn" ? blend(width, theta, scaling) : undefined;
  return Array.from({ length: width / 2 }, (_, pair) => {
    const power = Math.fround(base ** Math.fround((2 * pair) / width));
    if (scaling.kind === "longrope") return Math.fround(1 / Math.fround((divisors?.[pair] ?? 1) * power));
    const frequency = Math.fround(1 / power);
    if (scaling.kind !== "yarn") return scaled(frequency, scaling);
    const divided = Math.fround(1 / Math.fround(scaling.factor * power));
    const kept = Math.fround(1 - (ramp?.(pair) ?? 0));
    return Math.fround(Math.fround(divided * Math.fround(1 - kept)) + Math.fround(frequency * kept));
  });
}

/** Returns the factor on cosines and sines, which sharpens attention for scaled positions. */
export function attentionFactorOf(scaling: RotaryScaling): number {
  return "attentionFactor" in scaling ? scaling.attentionFactor : 1;
}

/**
 * Computes the angles of consecutive positions.
 * @param frequencies - of {@link rotaryFrequencies}
 * @param length - T: positions `first` to `first` + T − 1
 * @param factor - factor on cosines and sines
 */
export function rotaryAngles(
  frequencies: readonly number[],
  length: number,
  first = 0,
  factor = 1,
): RotaryAngles {
  const positions = arange(length, { dtype: "float32" }).add(first).unsqueeze(1); // [T, 1]
  const angles = positions.mul(tensor(frequencies, { dtype: "float32" })); // [T, R/2]
  const [cosines, sines] = [angles.cos(), angles.sin()];
  return factor === 1 ? { cosines, sines } : { cosines: cosines.mul(factor), sines: sines.mul(factor) };
}

/** Selects the angles of `positions`, int64 [T], each below the number of positions in the table. */
export function anglesAt({ cosines, sines }: RotaryAngles, positions: Tensor): RotaryAngles {
  return { cosines: cosines.indexSelect(0, positions), sines: sines.indexSelect(0, positions) };
}

/**
 * Rotates feature i < R/2 together with feature i + R/2 by the angles of their position; features from R on stay.
 * @param x - [B, H, T, K], K ≥ R; any strides, any float dtype
 * @returns [B, H, T, K]
 * @see Su et al. 2021, https://arxiv.org/abs/2104.09864
 */
export function rotate(x: Tensor, { cosines, sines }: RotaryAngles): Tensor {
  if (x.dtype !== "float64" && isFused()) return ops.troupe.rotary(x, cosines, sines);
  return explicitRotation(x, { cosines: cosines.to(x.dtype), sines: sines.to(x.dtype) });
}

/** Computes {@link rotate} by its definition. */
export function explicitRotation(x: Tensor, { cosines, sines }: RotaryAngles): Tensor {
  const half = cosines.shape[1] ?? 0;
  const [first, second] = [x.narrow(3, 0, half), x.narrow(3, half, half)];
  const rest = x.narrow(3, 2 * half, (x.shape[3] ?? 0) - 2 * half);
  const turned = [first.mul(cosines).sub(second.mul(sines)), second.mul(cosines).add(first.mul(sines))];
  return ops.cat([...turned, rest], 3);
}

type Of<Kind extends RotaryScaling["kind"]> = Extract<RotaryScaling, { readonly kind: Kind }>;

// As transformers' `_compute_dynamic_ntk_parameters`.
function grownBase(
  width: number,
  theta: number,
  { factor, numPositions }: Of<"dynamic">,
  length: number,
): number {
  const stretch = (factor * Math.max(length, numPositions)) / numPositions - (factor - 1);
  return theta * stretch ** (width / (width - 2));
}

function ownDivisors(
  width: number,
  { short, long, numPositions }: Of<"longrope">,
  length: number,
): readonly number[] {
  const divisors = length > numPositions ? long : short;
  if (divisors.length !== width / 2)
    throw argumentError("rotaryFrequencies", `${width / 2} divisors`, divisors.length);
  return divisors.map(Math.fround);
}

// As transformers' `_compute_yarn_parameters`: from 0, where a pair's frequency stays, to 1, where it is divided.
function blend(width: number, theta: number, scaling: Of<"yarn">): (pair: number) => number {
  const { numPositions, fastTurns, slowTurns, truncated } = scaling;
  const place = (turns: number) =>
    (width * Math.log(numPositions / (turns * 2 * Math.PI))) / (2 * Math.log(theta));
  const [low, high] = [place(fastTurns), place(slowTurns)];
  const first = Math.max(truncated ? Math.floor(low) : low, 0);
  const last = Math.min(truncated ? Math.ceil(high) : high, width - 1);
  const span = last === first ? 0.001 : last - first;
  return (pair) => Math.min(1, Math.max(0, Math.fround(Math.fround(pair - first) / span)));
}

// As transformers' `_compute_llama3_parameters`.
function scaled(frequency: number, scaling: Of<"default" | "dynamic" | "linear" | "llama3">): number {
  if (scaling.kind === "default" || scaling.kind === "dynamic") return frequency;
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
