import { TroupeError } from "../../../errors/index.ts";
import { roundHalfEven } from "./numpy/random-state.ts";

/**
 * The rule for the bounds of splits: Megatron-LM's of 2022, which Rapidformer uses, or Megatron-Core's. They round differently.
 */
export type DocumentSplitRule = "2022" | "core";

/** Ranges of training, validation and test. */
export type SplitRanges = readonly [train: Range, validation: Range, test: Range];
export type Range = readonly [begin: number, end: number];

/**
 * Divides `size` documents by `--split`.
 * @param split - weights such as "969, 30, 1": up to three numbers, separated by commas or slashes
 * @throws {TroupeError} `DATA_OPTION` for an invalid split
 */
export function splitRanges(split: string, size: number, rule: DocumentSplitRule = "2022"): SplitRanges {
  const fractions = fractionsOf(split, rule);
  const bounds = rule === "core" ? coreBounds(fractions, size) : bounds2022(fractions, size);
  const [first, second, third, last] = bounds as [number, number, number, number];
  return [
    [first, second],
    [second, third],
    [third, last],
  ];
}

function fractionsOf(split: string, rule: DocumentSplitRule): readonly number[] {
  const texts =
    rule === "core" ? (split.match(/[.0-9]+/g) ?? []) : split.split(split.includes(",") ? "," : "/");
  const weights = [...texts.map(Number), 0, 0, 0].slice(0, 3);
  const total = weights.reduce((sum, weight) => sum + weight, 0);
  if (weights.every((weight) => weight >= 0) && total > 0) return weights.map((weight) => weight / total);
  throw new TroupeError("DATA_OPTION", {
    where: "split",
    expected: "up to three weights by commas, not all of them 0",
    got: JSON.stringify(split),
    hint: 'such as "969, 30, 1"',
    fields: { split },
  });
}

/** Rounds each part separately, and subtracts the total error from every bound. */
function bounds2022(fractions: readonly number[], size: number): readonly number[] {
  const bounds = [0];
  for (const fraction of fractions) bounds.push((bounds.at(-1) as number) + roundHalfEven(fraction * size));
  const excess = (bounds.at(-1) as number) - size;
  return bounds.map((bound, index) => (index === 0 ? bound : bound - excess));
}

function coreBounds(fractions: readonly number[], size: number): readonly number[] {
  const ends = [0];
  for (const fraction of fractions) ends.push((ends.at(-1) as number) + fraction);
  return ends.map((end) => roundHalfEven(end * size));
}
