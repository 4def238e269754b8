import { randomUUID } from "node:crypto";
import { closeSync, fsyncSync, openSync, renameSync, rmSync, writeFileSync, writeSync } from "node:fs";
import {
  bytesOf,
  cachedMagic,
  type IndexedDataset,
  type IndexedDType,
  type IndexedFormat,
  indexedDTypes,
  mmapMagic,
} from "./indexed-dataset.ts";

/** The smallest type that Megatron uses for a vocabulary: two bytes below 65,500 tokens, else four. */
export function indexedDTypeFor(vocabSize: number | undefined): IndexedDType {
  return vocabSize !== undefined && vocabSize < 65_500 ? "uint16" : "int32";
}

/**
 * Writes an indexed dataset with the same bytes as Megatron. Its files appear with `finish`, the index last: a dataset
 * with an index is complete.
 */
export class IndexedWriter implements Disposable {
  readonly #prefix: string;
  readonly #dtype: IndexedDType;
  readonly #format: IndexedFormat;
  readonly #draft: string;
  readonly #file: number;
  readonly #lengths: number[] = [];
  readonly #documents: number[] = [0];
  #isOpen = true;

  /** @param prefix - the path without `.idx` and `.bin`; `finish` replaces an existing dataset */
  constructor(prefix: string, dtype: IndexedDType, format: IndexedFormat = "mmap") {
    this.#prefix = prefix;
    this.#dtype = dtype;
    this.#format = format;
    this.#draft = `${prefix}.tmp-${randomUUID()}`;
    this.#file = openSync(`${this.#draft}.bin`, "wx");
  }

  /** Appends a sequence to the current document. */
  addSequence(tokens: ArrayLike<number>): void {
    writeSync(this.#file, tokenBytes(tokens, this.#dtype));
    this.#lengths.push(tokens.length);
  }

  /** Ends the current document. */
  endDocument(): void {
    this.#documents.push(this.#lengths.length);
  }

  /** Appends all of another dataset with tokens of the same size. */
  addDataset(other: IndexedDataset): void {
    const before = this.#lengths.length;
    for (let sequence = 0; sequence < other.length; sequence++) this.addSequence(other.get(sequence));
    for (const bound of other.documents.subarray(1)) this.#documents.push(bound + before);
  }

  /** Moves the two files into place, durably. */
  finish(): void {
    fsyncSync(this.#file);
    this.#close();
    writeFileSync(`${this.#draft}.idx`, this.#index(), { flush: true });
    // An index next to another's tokens would look complete.
    rmSync(`${this.#prefix}.idx`, { force: true });
    renameSync(`${this.#draft}.bin`, `${this.#prefix}.bin`);
    renameSync(`${this.#draft}.idx`, `${this.#prefix}.idx`);
  }

  /** Removes unfinished files. */
  [Symbol.dispose](): void {
    this.#close();
    for (const kind of ["bin", "idx"]) rmSync(`${this.#draft}.${kind}`, { force: true });
  }

  #close(): void {
    if (this.#isOpen) closeSync(this.#file);
    this.#isOpen = false;
  }

  #index(): Buffer {
    const code = Number(Object.entries(indexedDTypes).find(([, dtype]) => dtype === this.#dtype)?.[0]);
    const starts = [0];
    for (const length of this.#lengths) starts.push((starts.at(-1) as number) + length);
    const size = bytesOf(this.#dtype);
    if (this.#format === "mmap")
      return Buffer.concat([
        mmapMagic,
        words([1]),
        Buffer.from([code]),
        words([this.#lengths.length, this.#documents.length]),
        Buffer.from(Int32Array.from(this.#lengths).buffer),
        words(starts.slice(0, -1).map((start) => start * size)),
        words(this.#documents),
      ]);
    const numSequences = this.#lengths.length;
    return Buffer.concat([
      cachedMagic,
      words([1, code, size, numSequences, numSequences, this.#documents.length]),
      words(Array.from({ length: numSequences + 1 }, (_, dim) => dim)),
      words(starts),
      words(this.#lengths),
      words(this.#documents),
    ]);
  }
}

const words = (values: readonly number[]): Buffer => Buffer.from(BigInt64Array.from(values, BigInt).buffer);

function tokenBytes(tokens: ArrayLike<number>, dtype: IndexedDType): Uint8Array {
  if (dtype === "int64") return Buffer.from(BigInt64Array.from(Array.from(tokens), BigInt).buffer);
  const kinds = {
    uint8: Uint8Array,
    int8: Int8Array,
    int16: Int16Array,
    int32: Int32Array,
    uint16: Uint16Array,
  };
  return new Uint8Array(kinds[dtype].from(tokens).buffer);
}
