import { createHash } from "node:crypto";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { type NamesOf, optionErrors, refuseUnknown, TroupeError } from "../../../errors/index.ts";
import { cacheFolder } from "../cache-folder.ts";
import type { Awaitable, Fingerprint } from "../dataset.ts";
import type { JsonRecord } from "../formats/index.ts";
import { isPromise, type OrderedSamples, type SampleOrder } from "../sample-dataset.ts";
import type { Block, BlockFile, BlockRecords } from "./block.ts";
import { BlockCache } from "./block-cache.ts";
import { BlockOrder } from "./block-order.ts";
import { type Columns, columnPicker, type PickColumns } from "./columns.ts";
import { openBlocks } from "./file-blocks.ts";
import { IndexProgress } from "./index-progress.ts";
import { openLoose } from "./loose-files.ts";
import { placeOf, withoutRefused } from "./mapped.ts";
import { placesOf, type RecordSource } from "./places.ts";

/** Options of {@link openRecords}. */
export interface RecordOptions<T> {
  /** The columns that are read, by the job's names for them. Default: all, by their own names. */
  readonly columns?: Columns | undefined;
  /**
   * Makes a sample of a record, for instance by decoding a picture. Default: the record.
   * @param place - names the record in errors
   */
  readonly map?: (record: JsonRecord, place: string) => Awaitable<T>;
  /**
   * Whether a record that cannot be read, lacks a column or is refused by `map` ends the run, or is left out; either way it is
   * named. To find those that `map` refuses, each record is mapped once, by the first run; `map` is known by its text. Default: "refuse".
   */
  readonly bad?: "refuse" | "leave-out";
  /** Bytes that are read at once. Default: 4 MiB. */
  readonly blockBytes?: number;
  /** Bytes of neighbouring blocks whose records are mixed when they are shuffled; twice as many are in memory. Default: 64 MiB. */
  readonly windowBytes?: number;
  /** Folder for what was found in files and for unpacked ones. Default: `$TROUPE_CACHE`, else `troupe` in the user's cache folder. */
  readonly cacheDir?: string;
  /** The most bytes of unpacked files in that folder. Default: 64 GiB. */
  readonly unpackedBytes?: number;
  /** Receives lines about long work and bad records. Default: they are written to standard error. */
  readonly tell?: (line: string) => void;
}

const OPTIONS: NamesOf<RecordOptions<unknown>> = {
  columns: true,
  map: true,
  bad: true,
  blockBytes: true,
  windowBytes: true,
  cacheDir: true,
  unpackedBytes: true,
  tell: true,
};

/** Files that are looked through at once. */
const FILES_AT_ONCE = 4;

/** Records of files, wherever those lie. A block is read when one of its records is. */
export interface Records<T> extends OrderedSamples<T> {
  /** The next steps' blocks are read ahead. */
  readonly length: number;
  /** Records left out. */
  readonly numBad: number;
  at(index: number): Awaitable<T>;
  /** Stands for the records and how they are cut into blocks, for {@link Dataset.fingerprint}. */
  fingerprint(): Fingerprint;
}

/**
 * Opens files of records: `.jsonl` and WebDataset's `.tar`, both also packed by gzip or zstd, `.parquet`, `.arrow`, or a folder of
 * loose files; local, over HTTP or from S3. All are gone through once, unless an earlier run did so; then only what a batch needs is read, and a bounded part of it kept. For
 * `sampleDataset`, which shuffles them by blocks.
 * @throws {TroupeError} `DATA_MISSING`, `DATA_UNREADABLE`, `DATA_EXAMPLE` naming the file and the place of a bad record,
 *   `DATA_OPTION`, `DATA_EMPTY` if no record is left, `DATA_CACHE_FAILED`, `DATA_PACKAGE`, `S3_FAILED`, `S3_UNAVAILABLE`
 */
export async function openRecords<T = JsonRecord>(
  from: RecordSource,
  options: RecordOptions<T> = {},
): Promise<Records<T>> {
  checkOptions(options);
  const {
    columns,
    bad = "refuse",
    blockBytes = 4 << 20,
    windowBytes = 64 << 20,
    unpackedBytes = 2 ** 36,
  } = options;
  const { tell = (line: string) => void process.stderr.write(`${line}\n`) } = options;
  const pick = columnPicker(columns);
  const cache = cacheFolder(options.cacheDir, "lists of records");
  const [indexFolder, unpackedFolder] = [join(cache, "records"), join(cache, "unpacked")];
  for (const folder of [indexFolder, unpackedFolder]) mkdirSync(folder, { recursive: true, mode: 0o700 });
  const places = await placesOf(from);
  const progress = new IndexProgress(places.length, tell);
  const files: BlockFile[] = [];
  const waiting = places.entries();
  const { map } = options;
  const without = (file: BlockFile) => {
    if (map === undefined || bad === "refuse") return file;
    const key = JSON.stringify([columns ?? "", `${map}`]);
    const mapped = (record: JsonRecord, at: string) => map(pick?.(record, at) ?? record, at);
    return withoutRefused(file, { map: mapped, indexFolder, key, advance: () => progress.add(0) });
  };
  const work = async () => {
    for (const [index, place] of waiting) {
      const found = await (typeof place !== "string"
        ? openLoose(place)
        : openBlocks(place, {
            blockBytes,
            leavesOut: bad === "leave-out",
            columns,
            advance: (numBytes) => progress.add(numBytes),
            ...{ indexFolder, unpackedFolder, unpackedBytes },
          }));
      files[index] = await without(found);
      progress.fileDone(files[index].found);
    }
  };
  await Promise.all(Array.from({ length: Math.min(FILES_AT_ONCE, places.length) }, work));
  progress.done();
  const records = new FileRecords(files, { options, pick, windowBytes });
  if (records.length > 0) return records;
  throw new TroupeError("DATA_EMPTY", {
    where: "data",
    expected: `records in ${[from].flat().join(", ")}`,
    got: "none",
    fields: { source: from },
  });
}

interface BlockInFile extends BlockFile {
  readonly block: Block;
  /** Records of the file before the block's, those left out included. */
  readonly before: number;
}

/** A block's records that are not left out. */
interface GoodRecords {
  readonly records: BlockRecords;
  readonly places: readonly number[];
}

class FileRecords<T> implements Records<T> {
  readonly length: number;
  readonly numBad: number;
  readonly #blocks: readonly BlockInFile[];
  /** The index of each block's first record. */
  readonly #begins: Float64Array;
  readonly #cache: BlockCache<GoodRecords>;
  readonly #options: RecordOptions<T>;
  readonly #pick: PickColumns | undefined;
  readonly #windowBytes: number;
  readonly #sums: readonly number[];
  #order: { readonly of: SampleOrder; readonly order: BlockOrder } | undefined;
  #ahead = -1;

  constructor(
    files: readonly BlockFile[],
    {
      options,
      pick,
      windowBytes,
    }: {
      readonly options: RecordOptions<T>;
      readonly pick: PickColumns | undefined;
      readonly windowBytes: number;
    },
  ) {
    this.#blocks = files.flatMap((file) => {
      let before = 0;
      return file.found.blocks.map((block) => {
        const placed = { ...file, block, before };
        before += block.numRecords + block.leftOut.length;
        return placed;
      });
    });
    this.#begins = new Float64Array(this.#blocks.length);
    let length = 0;
    for (const [index, { block }] of this.#blocks.entries()) {
      this.#begins[index] = length;
      length += block.numRecords;
    }
    this.length = length;
    this.numBad = files.reduce((sum, { found }) => sum + found.numBad, 0);
    this.#sums = files.map(({ found }) => found.sum);
    this.#options = options;
    this.#pick = pick;
    this.#windowBytes = windowBytes;
    const largest = this.#blocks.reduce((most, { block }) => Math.max(most, block.sizeBytes), 0);
    this.#cache = new BlockCache({
      read: (index) => this.#read(index),
      sizeOf: (index) => (this.#blocks[index] as BlockInFile).block.sizeBytes,
      // A window is larger by less than its last block.
      mostBytes: 2 * (windowBytes + largest),
    });
  }

  at(index: number): Awaitable<T> {
    const number = this.#blockOf(index);
    const row = index - (this.#begins[number] as number);
    const block = this.#cache.get(number);
    return isPromise(block)
      ? block.then((read) => this.#mapped(number, row, read))
      : this.#mapped(number, row, block);
  }

  indexAt(position: number, order: SampleOrder): number {
    const { seed, isShuffled } = order;
    if (this.#order?.of.seed !== seed || this.#order.of.isShuffled !== isShuffled) {
      const sizes = this.#blocks.map(({ block }) => block);
      const windowBytes = this.#windowBytes;
      this.#order = { of: order, order: new BlockOrder(sizes, { windowBytes, seed, isShuffled }) };
      this.#ahead = -1;
    }
    const { block, row } = this.#order.order.at(position);
    this.#readAhead(position, this.#order.order);
    return (this.#begins[block] as number) + row;
  }

  fingerprint(): Fingerprint {
    const counts = this.#blocks.map(({ block }) => block.numRecords);
    const records = createHash("sha256")
      .update(JSON.stringify([this.#sums, counts]))
      .digest("hex");
    const columns = this.#options.columns;
    return { records, windowBytes: this.#windowBytes, ...(columns && { columns: JSON.stringify(columns) }) };
  }

  /** Begins to read a block of the next window where a batch reaches the same place in this one. */
  #readAhead(position: number, order: BlockOrder): void {
    const blocks = order.ahead(position);
    const last = blocks.at(-1);
    if (last === undefined || last === this.#ahead) return;
    this.#ahead = last;
    // An error is thrown where the block is read.
    for (const block of blocks) Promise.resolve(this.#cache.get(block)).catch(() => {});
  }

  #blockOf(index: number): number {
    let [low, high] = [0, this.#begins.length - 1];
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if ((this.#begins[middle] as number) <= index) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  async #read(index: number): Promise<GoodRecords> {
    const { file, format, block } = this.#blocks[index] as BlockInFile;
    const records = await format.read(file, block);
    const leftOut = new Set(block.leftOut);
    const all = Array.from({ length: records.length }, (_, place) => place);
    return { records, places: leftOut.size === 0 ? all : all.filter((place) => !leftOut.has(place)) };
  }

  #mapped(number: number, row: number, { records, places }: GoodRecords): Awaitable<T> {
    const { file, before } = this.#blocks[number] as BlockInFile;
    const inBlock = places[row] as number;
    const place = placeOf(file.place, before + inBlock);
    const record = records.at(inBlock);
    const picked = this.#pick === undefined ? record : this.#pick(record, place);
    return this.#options.map === undefined ? (picked as T) : this.#options.map(picked, place);
  }
}

function checkOptions<T>(options: RecordOptions<T>): void {
  refuseUnknown("DATA_OPTION", "openRecords", options, OPTIONS);
  const wrong = optionErrors("DATA_OPTION", "openRecords");
  const { bad = "refuse", blockBytes = 1, windowBytes = 1, unpackedBytes = 1 } = options;
  if (bad !== "refuse" && bad !== "leave-out")
    throw wrong("bad", '"refuse" or "leave-out"', JSON.stringify(bad));
  for (const [name, value] of Object.entries({ blockBytes, windowBytes, unpackedBytes })) {
    if (!(Number.isSafeInteger(value) && value >= 1)) throw wrong(name, "a whole number from 1 on", value);
  }
}
