import { TroupeError } from "../../../errors/index.ts";

/** Upper bound of the datasets, whose indices have two bytes. */
const MOST_DATASETS = 2 ** 16;

/** For each sample of a blend, its dataset and its index there. */
export interface Blend {
  readonly datasets: Uint16Array;
  readonly samples: Float64Array;
}

/** Scales weights to a sum of 1. */
function normalized(weights: readonly number[]): number[] {
  const total = weights.reduce((sum, weight) => sum + weight, 0);
  return weights.map((weight) => weight / total);
}

/** Number of samples that each dataset of a blend of `numSamples` must have: its share, and 0.5 % more for rounding. */
export function blendSizes(weights: readonly number[], numSamples: number): number[] {
  return normalized(weights).map((weight) => Math.ceil(numSamples * weight * 1.005));
}

/**
 * Takes each sample from the dataset that is furthest behind its share; of equal ones the first.
 * @throws {TroupeError} `DATA_OPTION` for more than 65,536 datasets
 */
export function blend(weights: readonly number[], numSamples: number): Blend {
  if (weights.length > MOST_DATASETS)
    throw new TroupeError("DATA_OPTION", {
      where: "blend",
      expected: `at most ${MOST_DATASETS} datasets`,
      got: `${weights.length}`,
    });
  const shares = normalized(weights);
  const counts = shares.map(() => 0);
  const datasets = new Uint16Array(numSamples);
  const samples = new Float64Array(numSamples);
  for (let i = 0; i < numSamples; i++) {
    let chosen = 0;
    let furthest = Number.NEGATIVE_INFINITY;
    for (const [d, share] of shares.entries()) {
      const behind = share * Math.max(i, 1) - (counts[d] as number);
      if (behind > furthest) [chosen, furthest] = [d, behind];
    }
    datasets[i] = chosen;
    samples[i] = counts[chosen] as number;
    counts[chosen] = (counts[chosen] as number) + 1;
  }
  return { datasets, samples };
}
