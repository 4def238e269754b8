import type { Awaitable } from "../dataset.ts";

/** A file that is read by ranges, wherever it lies. */
export interface RangedFile {
  /** Its path or address, for messages; without what an address may hold of secrets. */
  readonly place: string;
  readonly sizeBytes: number;
  /** Differs once the bytes do: size and time of a local file, a server's tag. */
  readonly mark: string;
  /**
   * Reads bytes `begin` to `end`, exclusive, into memory of the caller's own.
   * @throws {TroupeError} `DATA_CHANGED` where the file has changed, `DATA_UNREADABLE`
   */
  read(begin: number, end: number): Promise<Buffer>;
}

/** The bytes of a file or of a part of it, for one who goes through them once. */
export interface Forward {
  readonly sizeBytes: number;
  /** Returns bytes that nobody else may change; `end` is at most `sizeBytes`. */
  read(begin: number, end: number): Awaitable<Buffer>;
}

const chunkBytes = 4 << 20;

/** Reads a file from its beginning to its end in chunks, the next one ahead, and jumps over what is not asked for. */
export class ForwardReader implements Forward {
  readonly #file: RangedFile;
  #begin = 0;
  #bytes: Buffer = Buffer.alloc(0);
  #ahead: { readonly begin: number; readonly bytes: Promise<Buffer> } | undefined;

  constructor(file: RangedFile) {
    this.#file = file;
  }

  get sizeBytes(): number {
    return this.#file.sizeBytes;
  }

  /** The bytes from `begin` to the end of a chunk; none at the end of the file. */
  async chunkAt(begin: number): Promise<Buffer> {
    const isNext = begin === this.#begin + this.#bytes.length;
    const ahead = this.#ahead?.begin === begin ? this.#ahead.bytes : this.#load(begin);
    this.#ahead = undefined;
    this.#bytes = await ahead;
    this.#begin = begin;
    const end = begin + this.#bytes.length;
    if (isNext && end < this.sizeBytes) {
      const bytes = this.#load(end);
      bytes.catch(() => {}); // thrown where it is asked for
      this.#ahead = { begin: end, bytes };
    }
    return this.#bytes;
  }

  read(begin: number, end: number): Awaitable<Buffer> {
    const at = begin - this.#begin;
    if (at >= 0 && end - this.#begin <= this.#bytes.length)
      return this.#bytes.subarray(at, end - this.#begin);
    if (end - begin > chunkBytes) return this.#file.read(begin, end);
    return this.#joined(begin, end);
  }

  async #joined(begin: number, end: number): Promise<Buffer> {
    const edge = this.#begin + this.#bytes.length;
    const first =
      begin >= this.#begin && begin < edge ? this.#bytes.subarray(begin - this.#begin) : undefined;
    const from = first === undefined ? begin : edge;
    const chunk = await this.chunkAt(from);
    const rest = chunk.subarray(0, end - from);
    return first === undefined ? rest : Buffer.concat([first, rest]);
  }

  #load(begin: number): Promise<Buffer> {
    return this.#file.read(begin, Math.min(this.sizeBytes, begin + chunkBytes));
  }
}
