import { readdir, stat } from "node:fs/promises";
import { basename, join } from "node:path";
import { TroupeError, whichPathWasMeant } from "../../../errors/index.ts";

/** Paths of files, by the split that each is of. */
export type SplitFiles = { readonly train: string } & Readonly<Record<string, string>>;

/** How the names of files tell the splits. */
const splits = { train: /train/i, validation: /(dev|valid)/i, test: /test/i } as const;

/**
 * The files below `path`, or `path` itself, whose names end as told: what has "train" in its name is trained on, "dev" or
 * "valid" held out, and "test" beside it. Where there is no "train" it is what comes first of the others, and where nothing is
 * held out by the name of validation, the test is.
 * @throws {TroupeError} `DATA_MISSING` where none is there
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

/** @returns the paths of the files in a folder, sorted, or that of the one file. @throws {TroupeError} `DATA_MISSING` */
export async function filesAt(path: string): Promise<string[]> {
  const found = await stat(path).catch((cause: unknown) => {
    throw missing(path, "a file or a folder", cause);
  });
  if (!found.isDirectory()) return [path];
  return (await readdir(path)).toSorted().map((name) => join(path, name));
}

/** @returns the same of each split */
export async function eachSplit<T, E>(
  splits: { readonly train: T } & Readonly<Record<string, T>>,
  read: (of: T) => Promise<E>,
): Promise<{ readonly train: E } & Readonly<Record<string, E>>> {
  const entries = await Promise.all(
    Object.entries(splits).map(async ([name, of]) => [name, await read(of)] as const),
  );
  return Object.fromEntries(entries) as { readonly train: E } & Readonly<Record<string, E>>;
}

/** A split in several files, of which one alone would be read. */
function severed(path: string, shard: string): TroupeError {
  return new TroupeError(
    "DATA_MISSING",
    {
      where: "tasks",
      expected: `one file of each split at ${path}`,
      got: basename(shard),
      hint: "join the files of a split into one",
    },
    { fields: { path } },
  );
}

function missing(path: string, expected: string, cause?: unknown): TroupeError {
  return new TroupeError(
    "DATA_MISSING",
    { where: "tasks", expected: `${expected} at ${path}`, got: "none", hint: whichPathWasMeant(path) },
    { fields: { path }, cause },
  );
}
