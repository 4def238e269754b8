import { readdir, stat } from "node:fs/promises";
import { basename, extname, join } from "node:path";
import { TroupeError, whichPathWasMeant } from "../../../errors/index.ts";
import { type Awaitable, type JsonRecord, readRecords } from "../../../library/data/index.ts";
import type { Examples } from "../task.ts";

/** Paths of files by split, those of several shards in order. */
type SplitFiles = { readonly train: readonly string[] } & Readonly<Record<string, readonly string[]>>;

/** Patterns in names of files that identify splits. */
const splits = { train: /train/i, validation: /(dev|valid)/i, test: /test/i } as const;

/** The name of a shard, such as `train-00000-of-00003.parquet`, as Hugging Face's hub has them. */
const shardName = /^(.*)-(\d+)-of-(\d+)\b/;

/**
 * Assigns files below `path`, or `path` itself, to splits by their names: "train", "dev" or "valid", and "test". Without a "train"
 * the first remaining file is trained on; without a validation file the test file is held out.
 * @param ending - pattern of the end of a name
 * @throws {TroupeError} `DATA_MISSING` if no file matches, or shards are missing
 */
async function splitFiles(path: string, ending: RegExp): Promise<SplitFiles> {
  const files = (await filesAt(path)).filter((file) => ending.test(file));
  const found: Record<string, string> = {};
  for (const [split, pattern] of Object.entries(splits)) {
    const file = files.find((each) => pattern.test(basename(each)));
    if (file !== undefined) found[split] = file;
  }
  const left = [found.train, found.validation, found.test, files[0]].filter((file) => file !== undefined);
  const [train] = left;
  if (train === undefined) throw missing(path, `a file that ends in ${ending.source}`);
  const { validation, test } = found;
  const all = { ...found, train };
  const held = test === undefined || test === train ? { train } : { train, validation: test };
  const chosen = validation !== undefined && validation !== train ? all : held;
  const listed = Object.entries(chosen).map(([split, file]) => [split, shardsOf(file, files)]);
  return Object.fromEntries(listed) as SplitFiles;
}

/** @returns a file, with the others of its split if it is one of several shards */
function shardsOf(file: string, files: readonly string[]): readonly string[] {
  const partsOf = (of: string) => {
    const [, stem = "", index, count] = shardName.exec(basename(of)) ?? [];
    return { stem, index: Number(index), count: Number(count), ending: extname(of) };
  };
  const { stem, count, ending } = partsOf(file);
  if (Number.isNaN(count)) return [file];
  const all = files
    .filter((other) => {
      const of = partsOf(other);
      return of.stem === stem && of.count === count && of.ending === ending;
    })
    .toSorted((a, b) => partsOf(a).index - partsOf(b).index);
  const wrong = all.findIndex((each, at) => partsOf(each).index !== at);
  if (all.length === count && wrong < 0) return all;
  throw new TroupeError("DATA_MISSING", {
    where: "tasks",
    expected: `all ${count} shards of ${stem} beside ${file}`,
    got:
      wrong < 0 ? `the first ${all.length}` : `${basename(all[wrong] as string)} in place of number ${wrong}`,
    hint: "name the folder that has them",
    fields: { path: file },
  });
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
