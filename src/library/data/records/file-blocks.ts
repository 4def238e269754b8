import { createHash, randomUUID } from "node:crypto";
import { rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { TroupeError } from "../../../errors/index.ts";
import { maxFileBytes, parseBoundedJson, readBoundedText } from "../../../errors/untrusted/index.ts";
import type { BlockFile, FileBlocks, RecordFormat } from "./block.ts";
import { formatOf, openPlace } from "./places.ts";
import { searchBeside } from "./search.ts";
import type { SearchOptions } from "./search-worker.ts";
import { packingOf, UnpackedFile } from "./unpacked-file.ts";

/** Options of {@link openBlocks}. */
export interface IndexOptions extends SearchOptions {
  /** Lists of blocks are kept here, so that the next run need not go through the files. */
  readonly indexFolder: string;
  readonly unpackedFolder: string;
  /** The most bytes of unpacked files. */
  readonly unpackedBytes: number;
}

/** Raised when blocks of the same bytes may be cut in another way. */
const VERSION = 2;

/**
 * Opens a file and finds its blocks, by going through it once.
 * @throws {TroupeError} `DATA_EXAMPLE` for a bad record unless those are left out, errors of opening and reading
 */
export async function openBlocks(place: string, options: IndexOptions): Promise<BlockFile> {
  const format = formatOf(place) as RecordFormat;
  const packed = await openPlace(place);
  const { leavesOut, advance, blockBytes, columns } = options;
  const unpacked = { folder: options.unpackedFolder, mostBytes: options.unpackedBytes };
  const isPacked = packingOf(packed.place) !== undefined;
  let file = packed;
  try {
    if (isPacked) file = await UnpackedFile.open(packed, { ...unpacked, advance });
  } catch (error) {
    if (!(leavesOut && error instanceof TroupeError && error.code === "DATA_EXAMPLE")) throw error;
    return { file, format, found: { blocks: [], sum: 0, numBad: 1, bad: [error.message] } };
  }
  const key = [file.place, file.mark, blockBytes, leavesOut, JSON.stringify(columns ?? "")];
  const kept = keptPath(options.indexFolder, key);
  const known = await keptBlocks(kept);
  if (known !== undefined) {
    if (!isPacked) advance(file.sizeBytes);
    return { file, format, found: known };
  }
  const found = await searchBeside(place, file, format, {
    ...{ blockBytes, leavesOut, columns, unpacked },
    advance: isPacked ? () => {} : advance,
  });
  await keepBlocks(kept, found);
  return { file, format, found };
}

/** The path of a list of blocks. @param key - decides whether the list may be used; plain data */
export function keptPath(folder: string, key: readonly unknown[]): string {
  const text = JSON.stringify([VERSION, ...key]);
  return join(folder, createHash("sha256").update(text).digest("hex").slice(0, 32));
}

/** {@link Block} with less text. */
type KeptBlock = readonly [
  begin: number,
  end: number,
  sizeBytes: number,
  numRecords: number,
  ...leftOut: number[],
];

/** {@link FileBlocks} with less text. */
type KeptBlocks = Omit<FileBlocks, "blocks"> & { readonly blocks: readonly KeptBlock[] };

/** A list of blocks that was kept; undefined if there is none. */
export async function keptBlocks(path: string): Promise<FileBlocks | undefined> {
  try {
    const kept = parseBoundedJson(await readBoundedText(path, maxFileBytes.tokenizer)) as KeptBlocks;
    if (!kept.blocks.every((block) => block.length >= 4 && block.every(Number.isSafeInteger)))
      return undefined;
    const blocks = kept.blocks.map(([begin, end, sizeBytes, numRecords, ...leftOut]) => ({
      ...{ begin, end, sizeBytes, numRecords, leftOut },
    }));
    return { ...kept, blocks };
  } catch {
    return undefined;
  }
}

/** Keeps a list of blocks. Others may keep the same at the same time. That it cannot be kept costs the next run time alone. */
export async function keepBlocks(path: string, found: FileBlocks): Promise<void> {
  const blocks = found.blocks.map(
    ({ begin, end, sizeBytes, numRecords, leftOut }): KeptBlock => [
      begin,
      end,
      sizeBytes,
      numRecords,
      ...leftOut,
    ],
  );
  const temporary = `${path}.tmp-${randomUUID()}`;
  try {
    await writeFile(temporary, JSON.stringify({ ...found, blocks }), { mode: 0o600 });
    await rename(temporary, path);
  } catch {
    await rm(temporary, { force: true });
  }
}
