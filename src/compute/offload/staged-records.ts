import { hold, PAGE_BYTES, pageAligned, ScratchFile, type Tensor, tagMemory } from "../tensor/index.ts";

/** A buffer that a record is being read into before anyone has asked for it. */
interface Guess {
  readonly buffer: Tensor;
  readonly read: Promise<void>;
}

/** How a record is used. */
export interface RecordUse {
  /** What is in the file is of no interest: it is not read. */
  readonly fresh?: boolean;
  /** The record is not changed: it is not written back. */
  readonly readOnly?: boolean;
  /** Of uses that wait for a buffer, the one with the lowest place goes first. 0 */
  readonly place?: number;
}

const FLOATS_IN_PAGE = PAGE_BYTES / 4;

/**
 * Records of float32 in a scratch file, used through a few buffers in memory: while one record is worked on, those asked
 * for next are being read and the last one is being written. What that takes of memory is fixed from the beginning.
 *
 * Whatever the disk fails at is thrown by the use that it concerns; where that was over, because records are written
 * behind, by the next use of any and by {@link written}.
 */
export class StagedRecords {
  /** Memory of the buffers, for as long as this lives. */
  readonly stagingBytes: number;
  readonly #file: ScratchFile;
  readonly #numels: readonly number[];
  readonly #offsets: readonly number[];
  readonly #buffers: readonly Tensor[];
  readonly #free: Tensor[];
  readonly #waiting: { readonly place: number; readonly take: (buffer: Tensor) => void }[] = [];
  /** By record, the oldest first. */
  readonly #ahead = new Map<number, Guess>();
  /** The end of each record's last use, its write included. */
  readonly #ends = new Map<number, Promise<void>>();
  #failure: unknown;

  /**
   * @param directory - on the disk that is to hold the file
   * @param numels - elements of each record
   * @param numBuffers - one is worked on, one read, one written
   * @throws {TroupeError} `SCRATCH_FILE` where the disk has no room for all records
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

  get sizeBytes(): number {
    return this.#file.sizeBytes;
  }

  /** Whether the file's bytes pass the system's page cache by. */
  get direct(): boolean {
    return this.#file.direct;
  }

  /**
   * Runs `work` on a record's memory. Uses of one place get their buffers in the order in which they are asked for, and
   * those of one record follow each other.
   * @param work - may keep the tensor until it ends, and no longer
   * @returns what `work` returns, before the record has been written
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

  /** Begins to read a record that will soon be used, if a buffer lies idle. */
  expect(record: number): void {
    if (this.#ahead.has(record)) return;
    const buffer = this.#free.pop();
    if (buffer === undefined) return;
    const read = this.#read(record, buffer, this.#ends.get(record));
    // Thrown by the use that takes it.
    read.catch(() => {});
    this.#ahead.set(record, { buffer, read });
  }

  /** Waits until everything is in the file. @throws {TroupeError} `SCRATCH_FILE` */
  async written(): Promise<void> {
    await Promise.all(this.#ends.values());
    this.#throwFailure();
  }

  /** Gives file and buffers up; nothing may be in use. */
  dispose(): void {
    this.#file[Symbol.dispose]();
    for (const buffer of this.#buffers) buffer.dispose();
  }

  /** Takes a use's place behind the record's last one. */
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

  /** @returns fulfilled when the write has ended, in whatever way */
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
    // A wrong guess gives way to what is needed.
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
