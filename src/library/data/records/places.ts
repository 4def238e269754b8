import { basename } from "node:path";
import { TroupeError } from "../../../errors/index.ts";
import { fileStatus } from "../../../errors/untrusted/index.ts";
import { isS3 } from "../../s3-client.ts";
import { missingData, pathsOf } from "../text/text-source.ts";
import { arrow } from "./arrow.ts";
import type { RecordFormat } from "./block.ts";
import { HttpFile } from "./http-file.ts";
import { jsonLines } from "./lines.ts";
import { LocalFile } from "./local-file.ts";
import { type LooseFolder, looseFolder } from "./loose-files.ts";
import type { RangedFile } from "./ranged-file.ts";
import { parquet } from "./row-groups.ts";
import { S3Object, s3Places } from "./s3-object.ts";
import { tar } from "./tar.ts";

/**
 * Where records lie: a file, a folder, a pattern such as `data/*.jsonl`, an address (`http://`, `https://`, `s3://`), or a list of
 * those. In an address and in a path that does not exist, braces stand for several names: `{a,b}`, `{000..099}`.
 */
export type RecordSource = string | readonly string[];

/** How files are read, by the end of their names before one of a packing. */
const formats: readonly (readonly [ending: RegExp, format: RecordFormat])[] = [
  [/\.(jsonl|ndjson)(\.gz|\.zst)?$/i, jsonLines],
  [/\.(arrow|feather|ipc)$/i, arrow],
  [/\.parquet$/i, parquet],
  [/\.(tar(\.gz|\.zst)?|tgz)$/i, tar],
];

/** The format of a file by its name; undefined for another file. */
export function formatOf(place: string): RecordFormat | undefined {
  const path = isHttp(place) ? new URL(place).pathname : place;
  return formats.find(([ending]) => ending.test(path))?.[1];
}

/**
 * Finds the files of a source: entries and names of braces in the given order, those of a folder or pattern sorted, and of a folder
 * only the ones whose format is known, or else all its pictures, recordings and texts as samples. Each name of braces must be there.
 * @throws {TroupeError} `DATA_MISSING`, `DATA_OPTION` for a file whose format is not known
 */
export async function placesOf(source: RecordSource): Promise<(string | LooseFolder)[]> {
  const places: (string | LooseFolder)[] = [];
  for (const entry of typeof source === "string" ? [source] : source) {
    const found = await placesAt(entry);
    const known = found.filter((place) => formatOf(place) !== undefined);
    const [first] = found;
    if (first === undefined) throw missing(entry);
    const loose = known.length === 0 ? looseFolder(entry, found) : undefined;
    if (known.length === 0 && (loose === undefined || first === entry)) throw unknownFormat(first);
    places.push(...(loose === undefined ? known : [loose]));
  }
  if (places.length === 0) throw missing("");
  return places;
}

/** @throws {TroupeError} `DATA_MISSING`, `DATA_UNREADABLE`, `S3_FAILED`, `S3_UNAVAILABLE` */
export function openPlace(place: string): Promise<RangedFile> {
  if (isS3(place)) return S3Object.open(place);
  return isHttp(place) ? HttpFile.open(place) : LocalFile.open(place);
}

function isHttp(place: string): boolean {
  return /^https?:\/\//.test(place);
}

async function placesAt(entry: string): Promise<string[]> {
  if (isHttp(entry)) return spread(entry);
  const names = !isS3(entry) && fileStatus(entry) !== undefined ? [entry] : spread(entry);
  const found = await Promise.all(names.map(isS3(entry) ? s3Places : pathsOf));
  // A name among many that stands for nothing would be left out in silence.
  const absent = names.find((_, index) => found[index]?.length === 0);
  if (absent !== undefined) throw missing(absent);
  return found.flat();
}

/** The most names for one with braces. */
const MOST_NAMES = 1_000_000;

/** The names that one with braces stands for, from left to right. @throws {TroupeError} `DATA_OPTION` for too many */
function spread(name: string): string[] {
  const [all, before = "", inside = "", after = ""] = /^([^{]*)\{([^{}]*)\}(.*)$/s.exec(name) ?? [];
  if (all === undefined) return [name];
  const [, first, last] = /^(\d+)\.\.(\d+)$/.exec(inside) ?? [];
  const rests = spread(after);
  const count = first === undefined ? 0 : Number(last) - Number(first) + 1;
  if (count * rests.length > MOST_NAMES)
    throw new TroupeError("DATA_OPTION", {
      where: "data",
      expected: `at most ${MOST_NAMES} files`,
      got: JSON.stringify(name),
      fields: { name },
    });
  const listed = inside.includes(",") ? inside.split(",") : [`{${inside}}`];
  const parts =
    first === undefined
      ? listed
      : Array.from({ length: Math.max(0, count) }, (_, index) =>
          `${Number(first) + index}`.padStart(first.length, "0"),
        );
  return parts.flatMap((part) => rests.map((rest) => `${before}${part}${rest}`));
}

const missing = (entry: string) =>
  missingData("records", entry, 'give a file, a folder, an address or a pattern like "data/*.jsonl"');

function unknownFormat(place: string): TroupeError {
  return new TroupeError("DATA_OPTION", {
    where: "data",
    expected: "files whose names end in .jsonl, .tar, .parquet, .arrow, or .jsonl and .tar with .gz or .zst",
    got: JSON.stringify(basename(place)),
    fields: { place },
  });
}
