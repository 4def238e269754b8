import { TroupeError } from "../../../errors/index.ts";
import type { Awaitable } from "../dataset.ts";
import type { JsonRecord } from "../formats/index.ts";
import type { RangedFile } from "./ranged-file.ts";

/** A part of a file that is read at once. Plain data. */
export interface Block {
  readonly begin: number;
  readonly end: number;
  /** About so many in memory, when it is read. */
  readonly sizeBytes: number;
  /** Records, without those that are left out. */
  readonly numRecords: number;
  /** Places, among all records of the block, of those that are left out. */
  readonly leftOut: readonly number[];
}

/** The blocks of a file, in its order. Plain data. */
export interface FileBlocks {
  readonly blocks: readonly Block[];
  /** Stands for the file's records: the same for the same bytes, wherever they lie. */
  readonly sum: number;
  readonly numBad: number;
  /** The first bad records, each as a sentence. */
  readonly bad: readonly string[];
}

/** The records of a block, those that are left out included. */
export interface BlockRecords {
  readonly length: number;
  /** @throws {TroupeError} `DATA_EXAMPLE` for a bad one */
  at(index: number): JsonRecord;
}

/** How the files of one format are cut into blocks, and how a block is read. */
export interface RecordFormat {
  /** Goes through a file once and adds its records to `builder`. @throws {TroupeError} `DATA_EXAMPLE`, errors of reading */
  index(file: RangedFile, builder: BlockBuilder): Promise<void>;
  read(file: RangedFile, block: Block): Awaitable<BlockRecords>;
}

/** A file of records, with its blocks. */
export interface BlockFile {
  readonly file: RangedFile;
  readonly format: RecordFormat;
  readonly found: FileBlocks;
}

/** The most bad records of a file that are named. */
export const MOST_NAMED = 10;

/** Cuts a file's records into blocks, while they are found. */
export class BlockBuilder {
  readonly #blockBytes: number;
  /** Whether bad records are left out; otherwise {@link add} throws the first refusal. */
  readonly leavesOut: boolean;
  readonly #blocks: Block[] = [];
  readonly #bad: string[] = [];
  /** Refuses a record that lacks a column; a value may be undefined where it was not read. */
  readonly check: (record: JsonRecord, place: string) => void;
  /** Bytes gone through so far, of all files. */
  readonly advance: (numBytes: number) => void;
  #numBad = 0;
  #begin = 0;
  #end = 0;
  #numRecords = 0;
  #leftOut: number[] = [];
  /** Set by the format: see {@link FileBlocks.sum}. */
  sum = 0;

  constructor({ blockBytes, leavesOut, check, advance }: BuilderOptions) {
    this.#blockBytes = blockBytes;
    this.leavesOut = leavesOut;
    this.check = check;
    this.advance = advance;
  }

  /** Adds the next record, at bytes `begin` to `end`. @throws `refusal`, unless bad records are left out */
  add(begin: number, end: number, refusal?: TroupeError): void {
    const isFirst = this.#numRecords + this.#leftOut.length === 0;
    if (isFirst) this.#begin = begin;
    if (refusal === undefined) this.#numRecords++;
    else {
      this.#note(refusal);
      this.#leftOut.push(this.#numRecords + this.#leftOut.length);
    }
    this.#end = end;
    if (end - this.#begin >= this.#blockBytes) this.cut();
  }

  /** Adds the blocks that a file of rows itself has. @param read - the rows of one @throws as {@link add} */
  async addBlocks(
    { place }: RangedFile,
    blocks: readonly Block[],
    read: (block: Block) => Promise<readonly JsonRecord[]>,
  ): Promise<void> {
    let before = 0;
    for (const block of blocks) {
      try {
        // A damaged block or row shows when it is read, which is done now only where it may be left out.
        const leftOut = this.leavesOut ? this.#refused(await read(block), place, before) : [];
        const numRecords = block.numRecords - leftOut.length;
        if (numRecords > 0) this.#blocks.push({ ...block, numRecords, leftOut });
      } catch (error) {
        this.skip(exampleRefusal(error));
      }
      before += block.numRecords;
    }
  }

  /** The places of rows that the check refuses, each of which is noted. @param before - rows of the file in front of them */
  #refused(rows: readonly JsonRecord[], place: string, before: number): number[] {
    const leftOut: number[] = [];
    for (const [index, row] of rows.entries()) {
      try {
        this.check(row, `${place}, record ${before + index + 1}`);
      } catch (error) {
        this.#note(exampleRefusal(error));
        leftOut.push(index);
      }
    }
    return leftOut;
  }

  /** Leaves out bytes that no block is to hold, such as a record that is too long. @throws as {@link add} */
  skip(refusal: TroupeError): void {
    this.#note(refusal);
    this.cut();
  }

  /** Ends the present block. */
  cut(): void {
    const [numRecords, leftOut] = [this.#numRecords, this.#leftOut];
    const [begin, end] = [this.#begin, this.#end];
    if (numRecords > 0) this.#blocks.push({ begin, end, sizeBytes: end - begin, numRecords, leftOut });
    this.#numRecords = 0;
    this.#leftOut = [];
  }

  built(): FileBlocks {
    this.cut();
    return { blocks: this.#blocks, sum: this.sum, numBad: this.#numBad, bad: this.#bad };
  }

  #note(refusal: TroupeError): void {
    if (!this.leavesOut) throw refusal;
    this.#numBad++;
    if (this.#bad.length < MOST_NAMED) this.#bad.push(refusal.message);
  }
}

/** @throws `error` unless it refuses a record */
function exampleRefusal(error: unknown): TroupeError {
  if (error instanceof TroupeError && error.code === "DATA_EXAMPLE") return error;
  throw error;
}

/** Options of {@link BlockBuilder}. */
export interface BuilderOptions {
  /** A block ends with the record that reaches so many. */
  readonly blockBytes: number;
  readonly leavesOut: boolean;
  readonly check: BlockBuilder["check"];
  readonly advance: BlockBuilder["advance"];
}
