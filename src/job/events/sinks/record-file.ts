import {
  closeSync,
  constants,
  fstatSync,
  ftruncateSync,
  openSync,
  readSync,
  stat,
  statSync,
  write,
  writeSync,
} from "node:fs";
import { dirname } from "node:path";
import { promisify } from "node:util";
import { fileStatus, makeFolder } from "../../../errors/untrusted/index.ts";
import { closeDescriptor, DescriptorOutlet } from "./descriptor-outlet.ts";
import { type Batch, numWhole, type Outcome, type Outlet } from "./outlet.ts";

/** How a {@link RecordFile} is kept. */
export interface RecordFileOptions {
  /** Where it lies. Asked again when it was deleted: the one that takes its place may have another name. */
  readonly path: () => string;
  /** Whether it goes on behind what is there, on a line of its own; else it begins empty. */
  readonly appends?: boolean;
  /** What a file begins with. */
  readonly head?: () => Uint8Array;
  /**
   * Whether another makes its folder, which may be missing at first or later: opening the file is then tried again, like after any
   * failure. Only the folder that was there first counts, since a folder in its place may be another run's: if the folder was moved,
   * the file in it is continued. No link is followed in the file's place. Default: false.
   */
  readonly mayWait?: boolean;
}

const { O_APPEND, O_CREAT, O_DIRECTORY, O_NOFOLLOW, O_NONBLOCK, O_RDONLY, O_RDWR, O_TRUNC, O_WRONLY } =
  constants;
const lineEnd = Buffer.from("\n");
const statPath = promisify(stat);
const writeBytes = promisify(write);

/**
 * A file of pieces that ends with a whole one whatever happens to its disk: what a failed write has left of a piece is cut
 * off. A file that was deleted or moved, or whose folder was, is begun anew. Whoever writes says when to try again.
 */
export class RecordFile implements Outlet {
  readonly #options: RecordFileOptions;
  #path: string;
  #descriptor: number | undefined;
  /** The descriptor of the folder that it waits for. While that is open, no other folder can have its inode. */
  #folder: number | undefined;
  /** Of the file that is open: another one under its name is not it. */
  #inode = { dev: 0, ino: 0 };
  /** How long it is, all pieces whole. */
  #sizeBytes = 0;
  /** What lies behind that of a piece that is not whole. */
  #numTornBytes = 0;

  private constructor(options: RecordFileOptions) {
    this.#options = options;
    this.#path = options.path();
  }

  /**
   * The outlet for a path, its folder made where it is not there: of a pipe or a device, which cannot be cut or begun anew,
   * a `DescriptorOutlet`.
   * @throws what the file system says where it cannot be written, unless it may wait; ENXIO for a pipe that nobody reads
   */
  static open(options: RecordFileOptions): Outlet {
    const file = new RecordFile(options);
    const path = file.#path;
    if (options.mayWait) return file;
    const found = fileStatus(path);
    if (found === undefined || found.isFile() || found.isDirectory()) {
      file.#open();
      return file;
    }
    const descriptor = openSync(path, O_WRONLY | O_NONBLOCK);
    return new DescriptorOutlet(descriptor, { name: path, owns: true, head: options.head?.() });
  }

  get name(): string {
    return this.#path;
  }

  async write(batch: Batch): Promise<Outcome> {
    let numBytes = 0;
    try {
      if (!(await this.#isThere())) await this.#leave();
      const descriptor = this.#ready();
      while (numBytes < batch.bytes.length)
        numBytes += (await writeBytes(descriptor, batch.bytes.subarray(numBytes))).bytesWritten;
      return this.#written(batch, numBytes);
    } catch (error) {
      return this.#written(batch, numBytes, error);
    }
  }

  writeNow(batch: Batch): Outcome {
    let numBytes = 0;
    try {
      const descriptor = this.#ready();
      while (numBytes < batch.bytes.length) numBytes += writeSync(descriptor, batch.bytes, numBytes);
      return this.#written(batch, numBytes);
    } catch (error) {
      return this.#written(batch, numBytes, error);
    }
  }

  async close(): Promise<void> {
    await this.#leave();
    if (this.#folder !== undefined) await closeDescriptor(this.#folder);
    this.#folder = undefined;
  }

  /** Whether the file that is open, where one is, has its name still. */
  async #isThere(): Promise<boolean> {
    if (this.#descriptor === undefined) return true;
    const { dev, ino } = await statPath(this.#path).catch(() => ({ dev: -1, ino: -1 }));
    if (dev === this.#inode.dev && ino === this.#inode.ino) return true;
    return this.#folder !== undefined && !this.#isFolderThere() && fstatSync(this.#descriptor).nlink > 0;
  }

  /** Whether the folder that it waits for, if any, is still at its path. */
  #isFolderThere(): boolean {
    if (this.#folder === undefined) return true;
    const { dev, ino } = fstatSync(this.#folder, { bigint: true });
    const there = fileStatus(dirname(this.#path));
    return dev === there?.dev && ino === there.ino;
  }

  /** @throws ESTALE if the folder that it waits for is no longer at its path */
  #checkFolder(): void {
    if (this.#isFolderThere()) return;
    const message = `ESTALE: ${dirname(this.#path)} is not the folder that the run has begun in`;
    throw Object.assign(new Error(message), { code: "ESTALE" });
  }

  async #leave(): Promise<void> {
    const descriptor = this.#descriptor;
    this.#descriptor = undefined;
    if (descriptor !== undefined) await closeDescriptor(descriptor);
  }

  /** Has the file open, ending with a whole piece. @throws where that cannot be */
  #ready(): number {
    if (this.#descriptor !== undefined && this.#numTornBytes > 0) this.#cut(this.#descriptor);
    return this.#descriptor ?? this.#open();
  }

  #written(batch: Batch, numBytes: number, error?: unknown): Outcome {
    const numPieces = numWhole(batch, numBytes);
    const wholeBytes = batch.ends[numPieces - 1] ?? 0;
    this.#sizeBytes += wholeBytes;
    this.#numTornBytes += numBytes - wholeBytes;
    if (error === undefined) return { numPieces };
    // At once: a run that is killed while it waits leaves no half piece.
    if (this.#descriptor !== undefined && this.#numTornBytes > 0) {
      try {
        this.#cut(this.#descriptor);
      } catch {
        // It is tried again before anything else is written.
      }
    }
    return { numPieces, error: error as NodeJS.ErrnoException };
  }

  /** Takes half a piece off the end. @throws where that cannot be */
  #cut(descriptor: number): void {
    const isOurs = fstatSync(descriptor).size === this.#sizeBytes + this.#numTornBytes;
    if (isOurs) ftruncateSync(descriptor, this.#sizeBytes);
    else {
      // Others have written behind it, or cut it shorter: nothing of theirs is touched.
      this.#descriptor = undefined;
      closeSync(descriptor);
    }
    this.#numTornBytes = 0;
  }

  /** @throws where it cannot be opened, or has no room for what it begins with */
  #open(): number {
    const { path, appends = false, head, mayWait = false } = this.#options;
    // A name that is taken by now belongs to whoever took it.
    if (this.#inode.ino !== 0) this.#path = path();
    if (mayWait) this.#folder ??= openSync(dirname(this.#path), O_RDONLY | O_DIRECTORY);
    else makeFolder(dirname(this.#path));
    this.#checkFolder();
    const flags = O_APPEND | O_CREAT | (appends ? O_RDWR : O_WRONLY | O_TRUNC) | (mayWait ? O_NOFOLLOW : 0);
    const descriptor = openSync(this.#path, flags, 0o666);
    try {
      this.#checkFolder();
      const { size, dev, ino } = fstatSync(descriptor);
      const first = size === 0 ? head?.() : endsLine(descriptor, size) ? undefined : lineEnd;
      const numBytes = first === undefined ? 0 : begin(descriptor, size, first);
      this.#descriptor = descriptor;
      this.#inode = { dev, ino };
      this.#sizeBytes = size + numBytes;
      this.#numTornBytes = 0;
      return descriptor;
    } catch (error) {
      closeSync(descriptor);
      throw error;
    }
  }
}

/** Writes all of some bytes at the end, or none. @returns how many @throws where there is no room */
function begin(descriptor: number, sizeBytes: number, bytes: Uint8Array): number {
  try {
    for (let at = 0; at < bytes.length; ) at += writeSync(descriptor, bytes, at);
    return bytes.length;
  } catch (error) {
    ftruncateSync(descriptor, sizeBytes);
    throw error;
  }
}

/** Whether a file ends with a whole line: one that was killed may not. */
function endsLine(descriptor: number, sizeBytes: number): boolean {
  const last = Buffer.alloc(1);
  readSync(descriptor, last, 0, 1, sizeBytes - 1);
  return last.equals(lineEnd);
}
