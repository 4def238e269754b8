import { readdir, stat } from "node:fs/promises";
import { basename, dirname, join, relative } from "node:path";
import { TroupeError, whichPathWasMeant } from "../../../errors/index.ts";
import { fileStatus } from "../../../errors/untrusted/index.ts";
import { unreadable } from "../../../library/data/index.ts";

/** Paths of files by split, those of several shards in order. */
export type SplitFiles = { readonly train: readonly string[] } & Readonly<Record<string, readonly string[]>>;

/** Patterns in names of files that identify splits; the first that a name has counts. */
const splits = { train: /train/i, validation: /(dev|valid)/i, test: /test/i } as const;

/** Files beside data that are none: hidden ones, and what `datasets` computes from a dataset that it has saved. */
const leftOut = /^(\.|cache-.*\.arrow$)/;

/** A `.json` of records has the name of a split; another may describe anything. */
const jsonSplit = /^(train|dev|valid|validation|test)([-_.]?\d+(-of-\d+)?)?\.json$/i;

/** Files of a split that a refusal names. */
const MOST_NAMED = 4;

/** A file's place among the shards of its split. */
interface Shard {
  readonly file: string;
  /** Shards of one split have the same. */
  readonly family: string;
  /** The name without the number. */
  readonly stem: string;
  /** Undefined for a file without a number. */
  readonly index: number | undefined;
  /** How many there are, where the name says so. */
  readonly count: number | undefined;
}

/**
 * Assigns files at `path` to splits by their names: "train", "dev" or "valid", and "test". Without a "train" the first remaining
 * files are trained on; without a validation file the test file is held out. Files of one name with successive numbers are one split.
 * If a folder has no such files itself, those of its folders are taken: `data/train-0.parquet` and `train/0.tar` are of one split.
 * @param ending - pattern of the end of a name
 * @throws {TroupeError} `DATA_MISSING` if no file matches, or shards are missing; `DATA_SPLIT` for files that are not shards of one split
 */
export async function splitFiles(path: string, ending: RegExp): Promise<SplitFiles> {
  return assigned(await filesBelow(path, ending), path, ending);
}

/**
 * Assigns files as {@link splitFiles} does; without such files, the folders of `path` by their names, such as `train` and `test`, or
 * `path` itself if none is called `train`.
 * @throws {TroupeError} as {@link splitFiles}
 */
export async function splitFilesOrFolders(path: string, ending: RegExp): Promise<SplitFiles> {
  const files = await filesBelow(path, ending);
  if (files.length > 0) return assigned(files, path, ending);
  const entries = await filesAt(path);
  const folders = entries.filter((entry) => fileStatus(entry)?.isDirectory());
  const isSplit = folders.some((folder) => splitOf(basename(folder)) === "train");
  return isSplit ? assigned(folders, path, /$/) : { train: [path] };
}

function assigned(files: readonly string[], path: string, ending: RegExp): SplitFiles {
  const named = Object.groupBy(files, (file) => splitOf(relative(path, file)));
  const order = [...Object.keys(splits), "others"].filter((split) => named[split] !== undefined);
  const [trained, held, last] = order;
  if (trained === undefined) throw missing(path, `a file that ends in ${ending.source}`);
  const shardsOf = (name: string, split: string) => inOrder(named[name] ?? [], { split, path, ending });
  const train = shardsOf(trained, "train");
  if (held === undefined || held === "others") return { train };
  const validation = shardsOf(held, "validation");
  return last === "test" ? { train, validation, test: shardsOf(last, "test") } : { train, validation };
}

/** @returns sorted paths of the files in a folder, or the path of a single file. @throws {TroupeError} `DATA_MISSING`, `DATA_UNREADABLE` */
export async function filesAt(path: string): Promise<string[]> {
  const found = await stat(path).catch((cause: unknown) => {
    throw missing(path, "a file or a folder", cause);
  });
  if (!found.isDirectory()) return [path];
  const names = await readdir(path).catch((cause: unknown) => {
    throw unreadable(path, cause);
  });
  return names
    .filter((name) => !leftOut.test(name))
    .toSorted()
    .map((name) => join(path, name));
}

/** The split that a path below the data's folder names: its folder first. */
function splitOf(path: string): string {
  const names = [dirname(path), basename(path)];
  const found = names.map((name) => Object.entries(splits).find(([, pattern]) => pattern.test(name)));
  return found.find((split) => split !== undefined)?.[0] ?? "others";
}

async function filesBelow(path: string, ending: RegExp): Promise<string[]> {
  const files = await filesAt(path);
  if (files[0] === path) return files.filter((file) => ending.test(file));
  const areData = (file: string) =>
    ending.test(file) && (!file.endsWith(".json") || jsonSplit.test(basename(file)));
  const here = files.filter(areData);
  if (here.length > 0) return here;
  return (await Promise.all(files.map(filesAt))).flat().filter(areData);
}

/** Sorts the files of a split by their numbers. @throws {TroupeError} `DATA_MISSING`, `DATA_SPLIT` */
function inOrder(
  files: readonly string[],
  { split, path, ending }: { readonly split: string; readonly path: string; readonly ending: RegExp },
): readonly string[] {
  const shards = files.map((file) => shardOf(file, ending));
  const families = Object.values(Object.groupBy(shards, ({ family }) => family));
  if (families.length > 1) {
    const names = families.map((family) => relative(path, family?.[0]?.file ?? ""));
    throw new TroupeError("DATA_SPLIT", {
      where: "tasks",
      expected: `one file, or shards of one name, for ${split} at ${path}`,
      got: `${names.slice(0, MOST_NAMED).join(", ")}${names.length > MOST_NAMED ? ", …" : ""}`,
      hint: "leave those to read in a folder of their own",
      fields: { path, split },
    });
  }
  const sorted = shards.toSorted((a, b) => (a.index ?? 0) - (b.index ?? 0));
  const [{ file, stem, index, count }] = sorted as [Shard];
  // A name may end in a number without being a shard's.
  if (index === undefined || (count === undefined && sorted.length === 1)) return [file];
  const first = count === undefined && index === 1 ? 1 : 0;
  const all = sorted.map((each) => each.file);
  const wrong = sorted.findIndex((each, at) => each.index !== first + at);
  if (wrong < 0 && (count === undefined || all.length === count)) return all;
  throw new TroupeError("DATA_MISSING", {
    where: "tasks",
    expected:
      count === undefined
        ? `shards of ${stem} with all numbers from ${first} on beside ${file}`
        : `all ${count} shards of ${stem} beside ${file}`,
    got:
      wrong < 0
        ? `the first ${all.length}`
        : `${basename(all[wrong] as string)} in place of number ${first + wrong}`,
    hint: "name the folder that has them",
    fields: { path: file },
  });
}

/** Reads a name as a shard's: `train-00000-of-00003.parquet`, as on Hugging Face's hub, or `train-0.jsonl`. */
function shardOf(file: string, ending: RegExp): Shard {
  const [end = ""] = ending.exec(file) ?? [];
  const name = basename(file).slice(0, basename(file).length - end.length);
  const [, stem = name, index, count] =
    /^(.*)[-.](\d+)-of-(\d+)\b/.exec(name) ?? /^(.*?)[-_.]?(\d+)$/.exec(name) ?? [];
  const form = count ?? (index === undefined ? "" : name.slice(stem.length, -index.length));
  return {
    file,
    family: [dirname(file), stem, index === undefined ? "one" : "several", form, end].join("\0"),
    stem,
    index: index === undefined ? undefined : Number(index),
    count: count === undefined ? undefined : Number(count),
  };
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
