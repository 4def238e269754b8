import {
  closeSync,
  constants,
  fstatSync,
  ftruncateSync,
  openSync,
  readSync,
  stat,
  write,
  writeSync,
} from "node:fs";
import { dirname } from "node:path";
import { promisify } from "node:util";
import { fileStatus, makeFolder } from "../../../errors/untrusted/index.ts";
import { closeDescriptor, DescriptorOutlet } from "./descriptor-outlet.ts";
import { type Batch, numComplete, type Outcome, type Outlet } from "./outlet.ts";

/** Options of a {@link RecordFile}. */
export interface RecordFileOptions {
  /** Returns its path. Called again after the file was deleted: the one that replaces it may have another name. */
  readonly path: () => string;
  /** Whether it appends to an existing file, on a line of its own; else it starts empty. */
  readonly appends?: boolean;
  /** Returns the first bytes of a new file. */
  readonly head?: () => Uint8Array;
  /**
   * Whether another program creates its folder, which may be missing at first or later: opening the file is then tried again,
   * like after any failure. Only the folder that was there first counts, since a folder in its place may be another run's: if the
   * folder was moved, the file in it is continued. No link is followed in the file's place. Default: false.
   */
  readonly mayWait?: boolean;
}

const { O_APPEND, O_CREAT, O_DIRECTORY, O_NOFOLLOW, O_NONBLOCK, O_RDONLY, O_RDWR, O_TRUNC, O_WRONLY } =
  constants;
const lineEnd = Buffer.from("\n");
const statPath = promisify(stat);
const writeBytes = promisify(write);

/**
 * A file of pieces that always ends with a complete one: a partial piece left by a failed write is cut off. A file that
 * was deleted or moved, or whose folder was, is started again. The caller decides when to try again.
 */
export class RecordFile implements Outlet {
  readonly #options: RecordFileOptions;
  #path: string;
  #descriptor: number | undefined;
  /** Descriptor of the folder that it waits for. While that is open, no other folder can have its inode. */
  #folder: number | undefined;
  /** Inode of the open file: distinguishes it from another one under its name. */
  #inode = { dev: 0, ino: 0 };
  /** Its length in complete pieces. */
  #sizeBytes = 0;
  /** Length of a partial piece after them. */
  #numTornBytes = 0;

  private constructor(options: RecordFileOptions) {
    this.#options = options;
    this.#path = options.path();
  }

  /**
   * Opens an outlet for a path and creates its folder. For a pipe or a device, which cannot be cut or restarted,
   * returns a `DescriptorOutlet`.
   * @throws the file system's error where it cannot be written, unless it may wait; ENXIO for a pipe that nobody reads
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

  /** Whether the open file, if any, still has its name. */
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

  /** Checks that the folder that it waits for is still at its path. @throws ESTALE */
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

  /** Opens the file and cuts off a partial piece. Throws where it cannot. */
  #ready(): number {
    if (this.#descriptor !== undefined && this.#numTornBytes > 0) this.#cut(this.#descriptor);
    return this.#descriptor ?? this.#open();
  }

  #written(batch: Batch, numBytes: number, error?: unknown): Outcome {
    const numPieces = numComplete(batch, numBytes);
    const wholeBytes = batch.ends[numPieces - 1] ?? 0;
    this.#sizeBytes += wholeBytes;
    this.#numTornBytes += numBytes - wholeBytes;
    if (error === undefined) return { numPieces };
    // At once: a run that is killed while it waits must not leave a partial piece.
    if (this.#descriptor !== undefined && this.#numTornBytes > 0) {
      try {
        this.#cut(this.#descriptor);
      } catch {
        // It is tried again before anything else is written.
      }
    }
    return { numPieces, error: error as NodeJS.ErrnoException };
  }

  /** Cuts a partial piece off the end. Throws where it cannot. */
  #cut(descriptor: number): void {
    const isOurs = fstatSync(descriptor).size === this.#sizeBytes + this.#numTornBytes;
    if (isOurs) ftruncateSync(descriptor, this.#sizeBytes);
    else {
      // Another program has appended to it, or cut it shorter: its bytes are left alone.
      this.#descriptor = undefined;
      closeSync(descriptor);
    }
    this.#numTornBytes = 0;
  }

  /** Opens the file. Throws where it cannot be opened, or its first bytes have no room. */
  #open(): number {
    const { path, appends = false, head, mayWait = false } = this.#options;
    // If the path is taken by now, the file there belongs to another run.
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

/** Appends all bytes or none; throws where there is no room. @returns the number of bytes */
function begin(descriptor: number, sizeBytes: number, bytes: Uint8Array): number {
  try {
    for (let at = 0; at < bytes.length; ) at += writeSync(descriptor, bytes, at);
    return bytes.length;
  } catch (error) {
    ftruncateSync(descriptor, sizeBytes);
    throw error;
  }
}

/** Whether a file ends with a complete line: that of a killed run may not. */
function endsLine(descriptor: number, sizeBytes: number): boolean {
  const last = Buffer.alloc(1);
  readSync(descriptor, last, 0, 1, sizeBytes - 1);
  return last.equals(lineEnd);
}
