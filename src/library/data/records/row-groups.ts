import { crc32 } from "node:zlib";
import type { FileMetaData } from "hyparquet";
import { TroupeError } from "../../../errors/index.ts";
import {
  checkRowGroup,
  compressors,
  exampleError,
  type JsonRecord,
  PARQUET_TAIL_BYTES,
  parquetDescription,
  plainValue,
  rowGroups,
  sliceOf,
} from "../formats/index.ts";
import type { Block, RecordFormat } from "./block.ts";
import type { RangedFile } from "./ranged-file.ts";

/** A longer description of a file is refused. */
const MOST_DESCRIPTION_BYTES = 64 << 20;
/** The most files whose descriptions are kept. */
const MOST_KEPT = 64;

/** Parquet: a block is a group of rows, as its writer has cut it. */
export const parquet: RecordFormat = {
  async index(file, builder) {
    const { description, groups } = await described(file);
    builder.sum = crc32(description);
    const blocks = groups.map(({ begin, end, numRows, sizeBytes }) => ({
      ...{ begin, end, sizeBytes: Math.max(sizeBytes, end - begin), numRecords: numRows, leftOut: [] },
    }));
    await builder.addBlocks(file, blocks, (block) => readGroup(file, block));
    builder.advance(file.sizeBytes);
  },
  async read(file, block) {
    const rows = await readGroup(file, block);
    return { length: rows.length, at: (index) => rows[index] as JsonRecord };
  },
};

interface Described {
  /** In Thrift's format. */
  readonly description: Buffer;
  readonly groups: ReturnType<typeof rowGroups>;
  readonly metadata: FileMetaData;
}

const kept = new Map<RangedFile, Promise<Described>>();

/** @throws {TroupeError} `DATA_EXAMPLE` for a file without a valid description */
function described(file: RangedFile): Promise<Described> {
  const known = kept.get(file) ?? describe(file);
  kept.delete(file);
  kept.set(file, known);
  known.catch(() => kept.delete(file));
  const [oldest] = kept.keys();
  if (kept.size > MOST_KEPT && oldest !== undefined) kept.delete(oldest);
  return known;
}

async function describe(file: RangedFile): Promise<Described> {
  const { parquetMetadata } = await import("hyparquet");
  const { sizeBytes } = file;
  const tail = await file.read(Math.max(0, sizeBytes - PARQUET_TAIL_BYTES), sizeBytes);
  return refusing(file.place, async () => {
    const begin = parquetDescription(tail, sizeBytes);
    const size = sizeBytes - PARQUET_TAIL_BYTES - begin;
    if (size > MOST_DESCRIPTION_BYTES) throw new Error(`a description of ${size} bytes`);
    const description = await file.read(begin, sizeBytes - PARQUET_TAIL_BYTES);
    const groups = rowGroups(description, sizeBytes);
    const metadata = parquetMetadata(sliceOf(Buffer.concat([description, tail]), 0));
    return { description, groups, metadata };
  });
}

async function readGroup(file: RangedFile, { begin, end }: Block): Promise<JsonRecord[]> {
  const { description, groups, metadata } = await described(file);
  const { parquetReadObjects } = await import("hyparquet");
  const bytes = await file.read(begin, end);
  return refusing(file.place, async () => {
    const index = groups.findIndex((group) => group.begin === begin && group.end === end);
    checkRowGroup(description, index, bytes, begin);
    const group = metadata.row_groups.slice(index, index + 1);
    const rows = await parquetReadObjects({
      file: {
        byteLength: file.sizeBytes,
        slice: (from: number, to = file.sizeBytes) => {
          if (from < begin || to > end)
            throw new Error(`bytes ${from} to ${to} of a group at ${begin} to ${end}`);
          return sliceOf(bytes, from - begin, to - begin);
        },
      },
      metadata: { ...metadata, row_groups: group, num_rows: group[0]?.num_rows ?? 0n },
      compressors,
      // Bytes stay bytes, such as those of pictures, unless the file says that they are text.
      utf8: false,
    });
    return rows.map((row) => plainValue(row) as JsonRecord);
  });
}

async function refusing<T>(place: string, read: () => Promise<T>): Promise<T> {
  try {
    return await read();
  } catch (cause) {
    if (cause instanceof TroupeError) throw cause;
    throw exampleError(place, "Parquet", (cause as Error).message);
  }
}
