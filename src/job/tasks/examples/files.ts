import { type Awaitable, type JsonRecord, readRecords } from "../../../library/data/index.ts";
import type { Examples } from "../task.ts";
import { splitFiles } from "./splits.ts";

/** Reads every split. */
export async function eachSplit<T, E>(
  splits: { readonly train: T } & Readonly<Record<string, T>>,
  read: (of: T) => Promise<E>,
): Promise<{ readonly train: E } & Readonly<Record<string, E>>> {
  const entries = await Promise.all(
    Object.entries(splits).map(async ([name, of]) => [name, await read(of)] as const),
  );
  return Object.fromEntries(entries) as { readonly train: E } & Readonly<Record<string, E>>;
}

/** Reads the examples of every split from files named `ending`. */
export async function readSplits<E>(
  path: string,
  ending: RegExp,
  read: (file: string) => Promise<readonly E[]>,
): Promise<Examples<E>> {
  const files = await splitFiles(path, ending);
  return eachSplit(files, async (shards) => (await Promise.all(shards.map(read))).flat());
}

/** Reads examples from records, in files named `ending`. @param exampleOf - `place` names file and example in errors */
export async function readExamples<E>(
  path: string,
  ending: RegExp,
  exampleOf: (record: JsonRecord, place: string, file: string) => Awaitable<E>,
): Promise<Examples<E>> {
  return readSplits(path, ending, async (file) => {
    const records = await readRecords(file);
    const placeOf = (index: number) => `${file}, example ${index + 1}`;
    return Promise.all(records.map((record, index) => exampleOf(record, placeOf(index), file)));
  });
}
