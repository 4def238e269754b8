import { hold, PAGE_BYTES, pageAligned, ScratchFile, type Tensor, tagMemory } from "../tensor/index.ts";

/** A buffer into which a record is read ahead. */
interface Guess {
  readonly buffer: Tensor;
  readonly read: Promise<void>;
}

/** Options of using a record. */
export interface RecordUse {
  /** Does not read the record's old contents. */
  readonly fresh?: boolean;
  /** Does not write the record back. */
  readonly readOnly?: boolean;
  /** Priority among uses that wait for a buffer: the lowest goes first. Default: 0. */
  readonly place?: number;
}

const FLOATS_IN_PAGE = PAGE_BYTES / 4;

/**
 * Records of float32 in a scratch file, used through a few buffers in memory. While one record is in use, the next ones are
 * read and the last one is written. The memory for buffers is fixed from the beginning.
 *
 * A disk error is thrown by the use that it concerns. Because records are written after their use has ended, a failed write
 * is thrown by the next use of any record and by {@link written}.
 */
export class StagedRecords {
  /** Size of all buffers, in bytes. */
  readonly stagingBytes: number;
  readonly #file: ScratchFile;
  readonly #numels: readonly number[];
  readonly #offsets: readonly number[];
  readonly #buffers: readonly Tensor[];
  readonly #free: Tensor[];
  readonly #waiting: { readonly place: number; readonly take: (buffer: Tensor) => void }[] = [];
  /** Records being read ahead, the oldest first. */
  readonly #ahead = new Map<number, Guess>();
  /** Ends of each record's last use, its write included. */
  readonly #ends = new Map<number, Promise<void>>();
  #failure: unknown;

  /**
   * @param directory - a directory on the disk to use
   * @param numels - number of elements of each record
   * @param numBuffers - by default three: one in use, one being read, one being written
   * @throws {TroupeError} `SCRATCH_FILE` if the disk has no room for all records
   */
  constructor(directory: string, numels: readonly number[], numBuffers = 3) {
    this.#numels = numels.map((numel) => Math.ceil(numel / FLOATS_IN_PAGE) * FLOATS_IN_PAGE);
    let sizeBytes = 0;
    this.#offsets = this.#numels.map((numel) => {
      const offset = sizeBytes;
      sizeBytes += numel * 4;
      return offset;
    });
    this.#file = new ScratchFile(directory, sizeBytes);
    const largest = Math.max(0, ...this.#numels);
    this.#buffers = Array.from({ length: numBuffers }, () =>
      tagMemory("staging", () => hold(pageAligned(largest, "float32"))),
    );
    this.#free = [...this.#buffers];
    this.stagingBytes = numBuffers * largest * 4;
  }

  /** Whether transfers bypass the system's page cache. */
  get direct(): boolean {
    return this.#file.direct;
  }

  /**
   * Runs `work` on a record's memory. Uses of one priority get their buffers in the order of the calls, and uses of one
   * record run one after the other.
   * @param work - must not use the tensor after it ends
   * @returns the result of `work`, before the record has been written
   */
  async use<T>(
    record: number,
    work: (memory: Tensor) => Promise<T>,
    { fresh = false, readOnly = false, place = 0 }: RecordUse = {},
  ): Promise<T> {
    this.#throwFailure();
    const end = this.#begin(record);
    const buffer = await this.#bring(record, { fresh, place }, end.before).catch((error: unknown) => {
      end.reach();
      throw error;
    });
    const memory = this.#part(record, buffer);
    let written: Promise<void> | undefined;
    try {
      const result = await work(memory);
      if (!readOnly) written = this.#write(record, memory);
      return result;
    } finally {
      memory.dispose();
      const done = () => {
        end.reach();
        this.#give(buffer);
      };
      if (written === undefined) done();
      else void written.then(done);
    }
  }

  /** Begins to read a record that will soon be used, if a buffer is free. */
  expect(record: number): void {
    if (this.#ahead.has(record)) return;
    const buffer = this.#free.pop();
    if (buffer === undefined) return;
    const read = this.#read(record, buffer, this.#ends.get(record));
    // The use that takes it throws the error.
    read.catch(() => {});
    this.#ahead.set(record, { buffer, read });
  }

  /** Waits until everything is in the file. @throws {TroupeError} `SCRATCH_FILE` */
  async written(): Promise<void> {
    await Promise.all(this.#ends.values());
    this.#throwFailure();
  }

  /** Releases file and buffers; no record may be in use. */
  dispose(): void {
    this.#file[Symbol.dispose]();
    for (const buffer of this.#buffers) buffer.dispose();
  }

  /** Queues a use after the record's last one. */
  #begin(record: number): { readonly before: Promise<void> | undefined; reach(): void } {
    const before = this.#ends.get(record);
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#ends.set(record, promise);
    const reach = () => {
      if (this.#ends.get(record) === promise) this.#ends.delete(record);
      resolve();
    };
    return { before, reach };
  }

  async #bring(
    record: number,
    { fresh, place }: { readonly fresh: boolean; readonly place: number },
    before: Promise<void> | undefined,
  ): Promise<Tensor> {
    const guess = this.#ahead.get(record);
    this.#ahead.delete(record);
    const buffer = guess?.buffer ?? (await this.#take(place));
    try {
      await (guess?.read ?? (fresh ? before : this.#read(record, buffer, before)));
      return buffer;
    } catch (error) {
      this.#give(buffer);
      throw error;
    }
  }

  async #read(record: number, buffer: Tensor, before: Promise<void> | undefined): Promise<void> {
    await before;
    const memory = this.#part(record, buffer);
    try {
      await this.#file.read(memory, this.#offsets[record] as number);
    } finally {
      memory.dispose();
    }
  }

  /** Resolves when the write has ended, even if it failed. */
  async #write(record: number, memory: Tensor): Promise<void> {
    try {
      await this.#file.write(memory, this.#offsets[record] as number);
    } catch (error) {
      this.#failure ??= error;
    }
  }

  async #take(place: number): Promise<Tensor> {
    const free = this.#free.pop();
    if (free !== undefined) return free;
    const [guessed] = this.#ahead;
    if (guessed === undefined) return new Promise((take) => this.#waiting.push({ place, take }));
    // Take the buffer of a record that was read ahead but is not needed yet.
    const [record, { buffer, read }] = guessed;
    this.#ahead.delete(record);
    await read.catch(() => {});
    return buffer;
  }

  #give(buffer: Tensor): void {
    const [first, ...rest] = this.#waiting;
    if (first === undefined) {
      this.#free.push(buffer);
      return;
    }
    const next = rest.reduce((best, each) => (each.place < best.place ? each : best), first);
    this.#waiting.splice(this.#waiting.indexOf(next), 1);
    next.take(buffer);
  }

  #part(record: number, buffer: Tensor): Tensor {
    return hold(() => buffer.narrow(0, 0, this.#numels[record] as number));
  }

  #throwFailure(): void {
    if (this.#failure !== undefined) throw this.#failure;
  }
}
