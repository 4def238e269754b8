import { type Awaitable, type JsonRecord, openRecords, readRecords } from "../../../library/data/index.ts";
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

/** Ends of the names of files of records, and of others. @param others - without the dot */
export function recordFiles(...others: readonly string[]): RegExp {
  return new RegExp(`\\.(${["jsonl(\\.gz|\\.zst)?", "json", "parquet", "arrow", ...others].join("|")})$`);
}

/** Reads all records of a file. @throws {TroupeError} `DATA_EXAMPLE` naming the place of a bad one; others as `openRecords` */
export async function recordsIn(file: string): Promise<readonly JsonRecord[]> {
  if (!/\.(arrow|gz|zst)$/.test(file)) return readRecords(file);
  const records = await openRecords(file);
  return inTurns(Array(records.length).keys(), (index) => records.at(index));
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
    const records = await recordsIn(file);
    const placeOf = (index: number) => `${file}, example ${index + 1}`;
    return Promise.all(records.map((record, index) => exampleOf(record, placeOf(index), file)));
  });
}

/** Items that are mapped at once. */
const AT_ONCE = 64;

/** Maps items in order, a bounded number of them at once. */
export async function inTurns<T, R>(items: Iterable<T>, map: (item: T) => Awaitable<R>): Promise<R[]> {
  const all = [...items];
  const mapped: R[] = [];
  for (let first = 0; first < all.length; first += AT_ONCE)
    mapped.push(...(await Promise.all(all.slice(first, first + AT_ONCE).map(map))));
  return mapped;
}
