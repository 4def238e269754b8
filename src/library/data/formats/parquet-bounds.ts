/** The most values, and uncompressed bytes, for each byte of a file, and in addition. */
const [VALUES_PER_BYTE, FREE_VALUES] = [16, 100_000];
const [BYTES_PER_BYTE, FREE_BYTES] = [32, 1 << 20];
const MAX_DEPTH = 32;
/** Bytes of a 64-bit number. */
const MAX_VARINT_BYTES = 10;
/** An encoding in which each text may repeat the beginning of the one before. */
const DELTA_BYTE_ARRAY = 7;

/** A structure in Thrift's format: its fields by number. */
type Fields = ReadonlyMap<number, Field>;
type Field = number | Uint8Array | Fields | readonly Field[];

/** A group of rows, which lies in one part of its file. */
export interface RowGroup {
  readonly begin: number;
  readonly end: number;
  readonly numRows: number;
  /** Bytes of its pages, uncompressed. */
  readonly sizeBytes: number;
}

/** The bytes at the end of a Parquet file that say how long its description is. */
export const PARQUET_TAIL_BYTES = 8;

/** @returns where a file's description begins, by its last bytes. @throws {Error} in words, where it has none */
export function parquetDescription(tail: Buffer, fileBytes: number): number {
  const end = fileBytes - PARQUET_TAIL_BYTES;
  const size = tail.length < PARQUET_TAIL_BYTES ? 0 : tail.readUInt32LE(0);
  if (end < 4 || size > end || tail.toString("latin1", 4) !== "PAR1")
    throw new Error("it does not end as Parquet does");
  return end - size;
}

/**
 * Reads a Parquet file's groups of rows from its description, and checks that it can hold as many rows.
 * @throws {Error} in words
 */
export function rowGroups(description: Buffer, fileBytes: number): RowGroup[] {
  const file = new Compact(description).fields(0);
  const budget = new Budget(fileBytes);
  budget.spend(numberIn(file, 3), 0);
  return structsIn(file, 4).map((group) => {
    budget.spend(numberIn(group, 3), 0);
    const ranges = structsIn(group, 1).map((column) => columnRange(column.get(3), fileBytes));
    return {
      begin: ranges.reduce((least, [begin]) => Math.min(least, begin), fileBytes),
      end: ranges.reduce((most, [, end]) => Math.max(most, end), 0),
      numRows: numberIn(group, 3),
      sizeBytes: numberIn(group, 2),
    };
  });
}

/**
 * Reads the page headers of a group of rows, and adds up the sizes that they claim, before anything is allocated: a file of some
 * hundred bytes can claim more than any memory holds.
 * @param bytes - of the file from `base` on, with all of the group
 * @throws {Error} in words, for an invalid group or one that claims more than its size allows
 */
export function checkRowGroup(description: Buffer, index: number, bytes: Buffer, base: number): void {
  const group = structsIn(new Compact(description).fields(0), 4)[index];
  if (group === undefined) throw new Error(`no group ${index} of rows`);
  const budget = new Budget(bytes.length);
  budget.spend(numberIn(group, 3), 0);
  for (const column of structsIn(group, 1)) {
    const [begin, end] = columnRange(column.get(3), base + bytes.length);
    if (begin < base) throw new Error(`a column at byte ${begin}, before its group`);
    checkColumn(bytes, begin - base, end - base, budget);
  }
}

/**
 * Checks all of a file.
 * @throws {Error} in words, for an invalid file or one that claims more than its size allows
 * @see https://github.com/apache/parquet-format/blob/master/src/main/thrift/parquet.thrift
 */
export function checkParquet(bytes: Buffer): void {
  const end = Math.max(0, bytes.length - PARQUET_TAIL_BYTES);
  const begin = parquetDescription(bytes.subarray(end), bytes.length);
  const description = bytes.subarray(begin, end);
  const groups = rowGroups(description, bytes.length);
  for (const index of groups.keys()) checkRowGroup(description, index, bytes, 0);
}

function columnRange(column: Field | undefined, end: number): [begin: number, end: number] {
  if (!(column instanceof Map)) throw new Error("a column without a description");
  const begin = numberIn(column, 11) || numberIn(column, 9);
  const until = begin + numberIn(column, 7);
  if (begin >= 0 && until >= begin && until <= end) return [begin, until];
  throw new Error(`a column at bytes ${begin} to ${until} of ${end}`);
}

function checkColumn(bytes: Buffer, begin: number, end: number, budget: Budget): void {
  for (let at = begin; at < end - 1; ) {
    const compact = new Compact(bytes.subarray(at, end));
    const head = compact.fields(0);
    const numBytes = numberIn(head, 3);
    if (!(numBytes >= 0)) throw new Error(`a page of ${numBytes} bytes`);
    const page = [5, 7, 8].map((field) => head.get(field)).find((field) => field instanceof Map) as
      | Fields
      | undefined;
    if (page === undefined) throw new Error("a page without a head");
    const [numValues, encoding] = [numberIn(page, 1), numberIn(page, head.has(8) ? 4 : 2)];
    const repeated = encoding === DELTA_BYTE_ARRAY ? numValues ** 2 / 2 : 0;
    budget.spend(numValues, numberIn(head, 2) + repeated);
    at += compact.position + numBytes;
  }
}

/** Counts down the values and bytes that a file of some size may still claim. */
class Budget {
  #values: number;
  #bytes: number;

  constructor(sizeBytes: number) {
    this.#values = FREE_VALUES + VALUES_PER_BYTE * sizeBytes;
    this.#bytes = FREE_BYTES + BYTES_PER_BYTE * sizeBytes;
  }

  spend(numValues: number, numBytes: number): void {
    if (!(numValues >= 0 && numBytes >= 0)) throw new Error("a negative size");
    this.#values -= numValues;
    this.#bytes -= numBytes;
    if (this.#values < 0) throw new Error("more values than a file of its size can hold");
    if (this.#bytes < 0) throw new Error("pages that grow more than Snappy makes them");
  }
}

/** Reads the part of Thrift's compact protocol that Parquet uses. */
class Compact {
  readonly #bytes: Uint8Array;
  #at = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  /** Bytes read so far. */
  get position(): number {
    return this.#at;
  }

  fields(depth: number): Fields {
    if (depth > MAX_DEPTH) throw new Error(`structures more than ${MAX_DEPTH} deep`);
    const fields = new Map<number, Field>();
    let number = 0;
    for (;;) {
      const head = this.#byte();
      if ((head & 0x0f) === 0) return fields;
      const step = head >> 4;
      number = step === 0 ? this.#zigzag() : number + step;
      fields.set(number, this.#value(head & 0x0f, depth, false));
    }
  }

  #value(kind: number, depth: number, isInList: boolean): Field {
    switch (kind) {
      case 1:
      case 2:
        return isInList ? this.#byte() : 2 - kind;
      case 3:
        return this.#byte();
      case 4:
      case 5:
      case 6:
        return this.#zigzag();
      case 7:
        return this.#skip(8)[0] ?? 0;
      case 8:
        return this.#skip(this.#varint());
      case 9: {
        const head = this.#byte();
        const length = head >> 4 === 15 ? this.#varint() : head >> 4;
        if (depth > MAX_DEPTH || length > this.#bytes.length - this.#at)
          throw new Error(`a list of ${length} in ${this.#bytes.length} bytes`);
        return Array.from({ length }, () => this.#value(head & 0x0f, depth + 1, true));
      }
      case 12:
        return this.fields(depth + 1);
      default:
        throw new Error(`a field of kind ${kind}`);
    }
  }

  #byte(): number {
    return this.#skip(1)[0] as number;
  }

  #skip(numBytes: number): Uint8Array {
    const begin = this.#at;
    if (!(begin + numBytes <= this.#bytes.length)) throw new Error("a description that was cut");
    this.#at += numBytes;
    return this.#bytes.subarray(begin, this.#at);
  }

  #varint(): number {
    let value = 0;
    for (let index = 0; index < MAX_VARINT_BYTES; index++) {
      const byte = this.#byte();
      value += (byte & 0x7f) * 2 ** (7 * index);
      if (byte < 0x80) return value;
    }
    throw new Error("a number of more than 64 bits");
  }

  #zigzag(): number {
    const value = this.#varint();
    return value % 2 === 0 ? value / 2 : -(value + 1) / 2;
  }
}

function numberIn(fields: Fields, number: number): number {
  const value = fields.get(number) ?? 0;
  if (typeof value !== "number") throw new Error(`field ${number} to be no number`);
  return value;
}

function structsIn(fields: Fields, number: number): Fields[] {
  const value = fields.get(number) ?? [];
  if (Array.isArray(value) && value.every((each) => each instanceof Map)) return value as Fields[];
  throw new Error(`field ${number} to be no list of structures`);
}
