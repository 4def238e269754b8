import { TroupeError } from "../../../errors/index.ts";
import { blend, blendSizes } from "./blend.ts";
import type { IndexedDataset } from "./indexed-dataset.ts";

/** Names of splits. */
export const splitNames = ["train", "validation", "test"] as const;

/** One of {@link splitNames}. */
export type SplitName = (typeof splitNames)[number];

/** Samples by index, of one dataset or a blend. */
export interface IndexedSamples<T> {
  readonly length: number;
  at(index: number): T;
}

/** One dataset of a blend. */
export interface Part {
  readonly data: IndexedDataset;
  readonly weight: number;
}

/** Opens the datasets of `--data-path`, with their weights. @throws {TroupeError} `DATA_OPTION` */
export function partsOf(
  dataPath: string | readonly (string | number)[],
): { prefix: string; weight: number }[] {
  if (typeof dataPath === "string") return [{ prefix: dataPath, weight: 1 }];
  if (dataPath.length === 1) return [{ prefix: String(dataPath[0]), weight: 1 }];
  const parts = [];
  for (let i = 0; i < dataPath.length; i += 2)
    parts.push({ weight: Number(dataPath[i]), prefix: String(dataPath[i + 1] ?? "") });
  if (parts.length > 0 && parts.every(({ weight, prefix }) => weight > 0 && prefix !== "")) return parts;
  throw new TroupeError("DATA_OPTION", {
    where: "dataPath",
    expected: "a prefix, or a weight above 0 and a prefix each",
    got: dataPath.join(" "),
    hint: "such as 0.7 data/books 0.3 data/web",
    fields: { dataPath: dataPath.join(" ") },
  });
}

/**
 * Blends the samples of one split: takes each from the part that is furthest behind its weight, as many as the parts
 * have together.
 * @param wanted - the fewest samples; left out: one epoch of each part
 * @param samplesOf - samples of one part; undefined where it has none
 */
export function blendedSamples<T>(
  parts: readonly Part[],
  wanted: number | undefined,
  samplesOf: (data: IndexedDataset, wanted: number | undefined) => IndexedSamples<T> | undefined,
): IndexedSamples<T> | undefined {
  const [only, ...others] = parts;
  if (only === undefined) return undefined;
  if (others.length === 0) return samplesOf(only.data, wanted);
  const weights = parts.map(({ weight }) => weight);
  const sizes = wanted === undefined ? parts.map(() => undefined) : blendSizes(weights, wanted);
  const each = parts.map(({ data }, i) => samplesOf(data, sizes[i]));
  if (each.some((samples) => samples === undefined)) return undefined;
  // Megatron's length. Beyond `wanted` a part may run out and then starts again (Megatron ends with an error).
  const total = each.reduce((sum, samples) => sum + (samples?.length ?? 0), 0);
  const { datasets, samples } = blend(weights, total);
  return {
    length: total,
    at: (index) => {
      const part = each[datasets[index] as number] as IndexedSamples<T>;
      return part.at((samples[index] as number) % part.length);
    },
  };
}
