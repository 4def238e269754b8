import { stat } from "node:fs/promises";
import { relative, sep } from "node:path";
import { crc32 } from "node:zlib";
import { maxFileBytes, readBounded } from "../../../errors/untrusted/index.ts";
import { unreadable } from "../formats/index.ts";
import type { BlockFile } from "./block.ts";
import { dotIn, readField } from "./tar.ts";

/** Files of which a folder is read as samples, where it has no files of records. */
const LOOSE = /\.(jpe?g|png|webp|gif|tiff?|avif|wav|flac|ogg|mp3|txt|json|cls)$/i;

/** Files whose sizes are asked for at once. */
const AT_ONCE = 64;

/** A folder of pictures, recordings or texts. */
export interface LooseFolder {
  readonly folder: string;
  /** Sorted. */
  readonly paths: readonly string[];
}

/** @returns undefined where there is none among these files of a folder */
export function looseFolder(folder: string, paths: readonly string[]): LooseFolder | undefined {
  const loose = paths.filter((path) => LOOSE.test(path));
  return loose.length === 0 ? undefined : { folder, paths: loose };
}

/**
 * Opens a folder as records like those of a tar: files with one name up to the first dot are a sample, and the folder that a file
 * lies in, right below, is its class, `cls` by its number and `folder` by its name. Each sample is a block of its own.
 */
export async function openLoose({ folder, paths }: LooseFolder): Promise<BlockFile> {
  const byKey = new Map<string, string[]>();
  for (const path of paths) {
    const key = path.slice(0, dotIn(path));
    byKey.set(key, [...(byKey.get(key) ?? []), path]);
  }
  const samples = [...byKey];
  const classOf = (key: string) => {
    const [first = "", ...below] = relative(folder, key).split(sep);
    return below.length === 0 ? undefined : first;
  };
  const classes = [...new Set(samples.map(([key]) => classOf(key) ?? ""))].toSorted();
  const sizes: number[] = [];
  for (let first = 0; first < samples.length; first += AT_ONCE)
    sizes.push(
      ...(await Promise.all(samples.slice(first, first + AT_ONCE).map(([, files]) => sizeOf(files)))),
    );
  const names = samples.map(
    ([key, files], index) => `${relative(folder, key)} ${files.length} ${sizes[index]}`,
  );
  return {
    file: { place: folder, sizeBytes: 0, mark: "", read: () => Promise.resolve(Buffer.alloc(0)) },
    found: {
      blocks: sizes.map((sizeBytes, index) => ({
        ...{ begin: index, end: index + 1, sizeBytes, numRecords: 1, leftOut: [] },
      })),
      ...{ sum: crc32(names.join("\n")), numBad: 0, bad: [] },
    },
    format: {
      index: () => Promise.resolve(),
      async read(_file, { begin }) {
        const [key, files] = samples[begin] as [string, string[]];
        const data = await Promise.allSettled(files.map((path) => readBounded(path, maxFileBytes.picture)));
        const dataOf = (index: number, path: string) => {
          const read = data[index] as PromiseSettledResult<Buffer>;
          return read.status === "fulfilled" ? read.value : refuse(path)(read.reason);
        };
        const ofClass = classOf(key);
        const at = () =>
          Object.fromEntries<unknown>([
            ["__key__", relative(folder, key)],
            ...(ofClass === undefined
              ? []
              : ([
                  ["cls", classes.indexOf(ofClass)],
                  ["folder", ofClass],
                ] as const)),
            ...files.map((path, index) => {
              const field = path.slice(dotIn(path) + 1).toLowerCase();
              return [field, readField(field, dataOf(index, path), path)] as const;
            }),
          ]);
        return { length: 1, at };
      },
    },
  };
}

async function sizeOf(paths: readonly string[]): Promise<number> {
  const sizes = await Promise.all(paths.map(async (path) => (await stat(path).catch(refuse(path))).size));
  return sizes.reduce((sum, size) => sum + size, 0);
}

function refuse(path: string): (cause: unknown) => never {
  return (cause) => {
    throw unreadable(path, cause);
  };
}
