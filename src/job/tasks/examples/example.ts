import { exampleError, type JsonRecord } from "../../../library/data/index.ts";
import type { Examples } from "../task.ts";

/** @returns the error for an example of a wrong form */
export const example = exampleError;

/** @returns the text under the first of `names` that a record has. @throws {TroupeError} `DATA_EXAMPLE` */
export function textIn(record: JsonRecord, names: readonly string[], place: string): string {
  const found = names.map((name) => record[name]).find((value) => value !== undefined);
  if (typeof found === "string") return found;
  throw exampleError(place, `a text under ${names.join(" or ")}`, typeof found);
}

/** Applies `map` to every split. */
export function mapSplits<E, T>(
  examples: Examples<E>,
  map: (split: readonly E[]) => readonly T[],
): Examples<T> {
  const splits = Object.entries(examples).map(([name, split]) => [name, map(split)]);
  return Object.fromEntries(splits) as Examples<T>;
}

/** Applies `map` to every example of every split. */
export function mapExamples<E, T>(examples: Examples<E>, map: (example: E, index: number) => T): Examples<T> {
  return mapSplits(examples, (split) => split.map(map));
}
