import {
  exampleError,
  type JsonRecord,
  type OrderedSamples,
  type SampleOrder,
} from "../../../library/data/index.ts";
import type { Examples, SplitExamples } from "../task.ts";

/** @returns the text under the first of `names` that a record has. @throws {TroupeError} `DATA_EXAMPLE` */
export function textIn(record: JsonRecord, names: readonly string[], place: string): string {
  const found = names.map((name) => record[name]).find((value) => value !== undefined && value !== null);
  if (typeof found === "string") return found;
  throw exampleError(place, `a text under ${names.join(" or ")}`, kindOf(found));
}

/** Applies `map` to every split. */
export function mapSplits<E, T>(
  examples: Examples<E>,
  map: (split: SplitExamples<E>) => SplitExamples<T>,
): Examples<T> {
  const splits = Object.entries(examples).map(([name, split]) => [name, map(split)]);
  return Object.fromEntries(splits) as Examples<T>;
}

/** Applies `map` to every example of every split, and keeps their order. */
export function mapExamples<E, T>(examples: Examples<E>, map: (example: E, index: number) => T): Examples<T> {
  return mapSplits(examples, (split) => inOrderOf(split, split.map(map)));
}

/** Gives a list the order of the samples that it was made of, if those have one. */
export function inOrderOf<T>(
  samples: Partial<Pick<OrderedSamples<unknown>, "indexAt">>,
  list: readonly T[],
): SplitExamples<T> {
  if (samples.indexAt === undefined) return list;
  return Object.assign(list, {
    indexAt: (position: number, order: SampleOrder) => samples.indexAt?.(position, order) ?? position,
  });
}

/** @returns the first label of a record: a name, or a number. @throws {TroupeError} `DATA_EXAMPLE` */
export function labelIn(record: JsonRecord, place: string): string | number {
  const label = LABELS.map((name) => record[name]).find((value) => value !== undefined && value !== null);
  if (typeof label === "string" || typeof label === "number") return label;
  throw exampleError(place, `a label under ${LABELS.join(" or ")}`, kindOf(label));
}

const kindOf = (value: unknown) => (value === undefined ? "none" : typeof value);

/** Names of labels; `folder` and `cls` are those of folders and tars. */
const LABELS = ["label", "labels", "folder", "cls"];
