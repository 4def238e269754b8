import { readdir, stat } from "node:fs/promises";
import { basename, join } from "node:path";
import { TroupeError, whichPathWasMeant } from "../../../errors/index.ts";
import { type Awaitable, type JsonRecord, readRecords } from "../../../library/data/index.ts";
import type { Examples } from "../task.ts";

/** Paths of files by split. */
export type SplitFiles = { readonly train: string } & Readonly<Record<string, string>>;

/** Patterns in names of files that identify splits. */
const splits = { train: /train/i, validation: /(dev|valid)/i, test: /test/i } as const;

/**
 * Assigns files below `path`, or `path` itself, to splits by their names: "train", "dev" or "valid", and "test". Without a "train"
 * the first remaining file is trained on; without a validation file the test file is held out.
 * @param ending - pattern of the end of a name
 * @throws {TroupeError} `DATA_MISSING` if no file matches
 */
export async function splitFiles(path: string, ending: RegExp): Promise<SplitFiles> {
  const files = (await filesAt(path)).filter((file) => ending.test(file));
  const found: Record<string, string> = {};
  const shard = files.find((file) => /-of-0*([2-9]|[1-9]\d+)\.\w+$/.test(file));
  if (shard !== undefined) throw severed(path, shard);
  for (const [split, pattern] of Object.entries(splits)) {
    const file = files.find((each) => pattern.test(basename(each)));
    if (file !== undefined) found[split] = file;
  }
  const left = [found.train, found.validation, found.test, files[0]].filter((file) => file !== undefined);
  const [train] = left;
  if (train === undefined) throw missing(path, `a file that ends in ${ending.source}`);
  const { validation, test } = found;
  if (validation !== undefined && validation !== train) return { ...found, train, validation };
  return test === undefined || test === train ? { train } : { train, validation: test };
}

/** @returns sorted paths of the files in a folder, or the path of a single file. @throws {TroupeError} `DATA_MISSING` */
export async function filesAt(path: string): Promise<string[]> {
  const found = await stat(path).catch((cause: unknown) => {
    throw missing(path, "a file or a folder", cause);
  });
  if (!found.isDirectory()) return [path];
  return (await readdir(path)).toSorted().map((name) => join(path, name));
}

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

/** Reads examples from records, in files named `ending`. @param exampleOf - `place` names file and example in errors */
export async function readExamples<E>(
  path: string,
  ending: RegExp,
  exampleOf: (record: JsonRecord, place: string, file: string) => Awaitable<E>,
): Promise<Examples<E>> {
  return eachSplit(await splitFiles(path, ending), async (file) => {
    const records = await readRecords(file);
    const placeOf = (index: number) => `${file}, example ${index + 1}`;
    return Promise.all(records.map((record, index) => exampleOf(record, placeOf(index), file)));
  });
}

/** The error for a split in several files, of which only one would be read. */
function severed(path: string, shard: string): TroupeError {
  return new TroupeError("DATA_MISSING", {
    where: "tasks",
    expected: `one file of each split at ${path}`,
    got: basename(shard),
    hint: "join the files of a split into one",
    fields: { path },
  });
}

function missing(path: string, expected: string, cause?: unknown): TroupeError {
  return new TroupeError("DATA_MISSING", {
    where: "tasks",
    expected: `${expected} at ${path}`,
    got: "none",
    hint: whichPathWasMeant(path),
    fields: { path },
    cause,
  });
}
