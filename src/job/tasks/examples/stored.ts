import { stat } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import { maxFileBytes, readBounded } from "../../../errors/untrusted/index.ts";
import {
  type Awaitable,
  exampleError,
  type JsonRecord,
  openRecords,
  readRecords,
  type SampleOrder,
  unreadable,
} from "../../../library/data/index.ts";
import type { Examples, SplitExamples } from "../task.ts";
import { inOrderOf } from "./example.ts";
import { eachSplit, inTurns } from "./files.ts";
import { splitFilesOrFolders } from "./splits.ts";

/** A record, and how to read it again. An example that keeps `record` keeps the block of the file that it lies in. */
export interface StoredRecord {
  readonly record: JsonRecord;
  /** Names it in errors. */
  readonly place: string;
  /** Paths in it are relative to this folder. */
  readonly folder: string;
  /** @throws {TroupeError} errors of reading */
  again(): Awaitable<JsonRecord>;
}

/** A record with its name. */
interface Placed {
  readonly record: JsonRecord;
  readonly place: string;
}

/** Records that are read one by one. */
interface PlacedRecords {
  readonly length: number;
  at(index: number): Awaitable<Placed | undefined>;
  indexAt?(position: number, order: SampleOrder): number;
}

/** Ends of the names of files with pictures or recordings, or with their paths. */
const ENDING = /\.((jsonl|tar)(\.gz|\.zst)?|tgz|parquet|arrow|tsv)$/;

/**
 * Goes once through the records of all splits, which `openRecords` then reads again as batches need them; a `.tsv` stays in memory.
 * Without such files, a folder's pictures and recordings are records.
 * @param exampleOf - makes an example that holds no more of the record than it needs
 * @throws {TroupeError} `DATA_EXAMPLE` naming file and record; others as `openRecords`
 */
export async function readStored<E>(
  path: string,
  exampleOf: (stored: StoredRecord) => Awaitable<E>,
): Promise<Examples<E>> {
  return eachSplit(await splitFilesOrFolders(path, ENDING), async (files): Promise<SplitExamples<E>> => {
    const [first = path] = files;
    const folder = (await stat(first)).isDirectory() ? first : dirname(first);
    const records = await openShards(files);
    const recordAt = async (index: number) => (await records.at(index)) as Placed;
    const examples = await inTurns(Array(records.length).keys(), async (index) => {
      const again = async () => (await recordAt(index)).record;
      return exampleOf({ ...(await recordAt(index)), folder, again });
    });
    return inOrderOf(records, examples);
  });
}

async function openShards(files: readonly string[]): Promise<PlacedRecords> {
  if (!files.some((file) => file.endsWith(".tsv")))
    return openRecords<Placed>(files, { map: (record, place) => ({ record: withJson(record), place }) });
  const tables = await Promise.all(files.map(readRecords));
  return tables.flatMap((rows, table) =>
    rows.map((record, index) => ({ record, place: `${files[table]}, record ${index + 1}` })),
  );
}

/** Adds the fields of a tar's `.json`, of which a sample's own have precedence. */
function withJson(record: JsonRecord): JsonRecord {
  const { json } = record;
  return typeof json === "object" && json !== null ? { ...json, ...record } : record;
}

/** A picture or recording: its bytes, or its file. */
export type Media = { readonly bytes: Uint8Array } | { readonly file: string };

/**
 * Finds a record's picture or recording: bytes, a path, or both as `datasets` keeps them.
 * @param names - of its column; the first that the record has counts
 * @throws {TroupeError} `DATA_EXAMPLE` if it has none
 */
export function mediaIn(
  { record, place, folder }: Pick<StoredRecord, "record" | "place" | "folder">,
  names: readonly string[],
): Media {
  const column = names.map((name) => record[name]).find((value) => value !== undefined && value !== null);
  const isPair = typeof column === "object" && !(column instanceof Uint8Array);
  const { bytes, path } = (isPair ? column : { bytes: column, path: column }) as JsonRecord;
  if (bytes instanceof Uint8Array) return { bytes };
  if (typeof path === "string") return { file: resolve(folder, path) };
  throw exampleError(place, `bytes or a path under ${names.join(" or ")}`, typeof column);
}

/** Reads the bytes, and names them in errors. @throws {TroupeError} `DATA_MISSING`, `DATA_UNREADABLE` */
export async function bytesOf(media: Media, place: string): Promise<{ bytes: Buffer; place: string }> {
  if ("bytes" in media) {
    const { buffer, byteOffset, length } = media.bytes;
    return { bytes: Buffer.from(buffer, byteOffset, length), place };
  }
  const { file } = media;
  const bytes = await readBounded(file, maxFileBytes.sound).catch((cause: unknown) => {
    throw unreadable(file, cause);
  });
  return { bytes, place: file };
}
