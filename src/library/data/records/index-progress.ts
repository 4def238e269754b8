import type { FileBlocks } from "./block.ts";

/** The time between two lines, and before the first. */
const EVERY_MS = 2_000;

/** Tells how far the search for records is, where it takes long, and what was left out. */
export class IndexProgress {
  readonly #numFiles: number;
  readonly #tell: (line: string) => void;
  readonly #beganMs = performance.now();
  #reportedMs = performance.now();
  #numDone = 0;
  #numBytes = 0;
  #numRecords = 0;
  #hasReported = false;

  constructor(numFiles: number, tell: (line: string) => void) {
    this.#numFiles = numFiles;
    this.#tell = tell;
  }

  /** Counts bytes that were gone through. */
  add(numBytes: number): void {
    this.#numBytes += numBytes;
    if (performance.now() - this.#reportedMs < EVERY_MS) return;
    this.#reportedMs = performance.now();
    this.#hasReported = true;
    this.#tell(`[data] ${this.#numDone} of ${this.#numFiles} files searched, ${this.#sizes()}`);
  }

  /** Counts a file, and names its bad records. */
  fileDone({ blocks, numBad, bad }: FileBlocks): void {
    this.#numDone++;
    this.#numRecords += blocks.reduce((sum, { numRecords }) => sum + numRecords, 0);
    for (const sentence of bad) this.#tell(`[data] left out: ${sentence}`);
    if (numBad > bad.length) this.#tell(`[data] left out: ${numBad - bad.length} more of this file`);
  }

  /** Ends the lines, if there were any. */
  done(): void {
    if (this.#hasReported) this.#tell(`[data] all files searched, ${this.#sizes()}`);
  }

  #sizes(): string {
    const seconds = (performance.now() - this.#beganMs) / 1_000;
    const megabytes = this.#numBytes / 1e6;
    const records = this.#numRecords === 0 ? "" : `${this.#numRecords} records, `;
    return `${records}${megabytes.toFixed(0)} MB, ${(megabytes / seconds).toFixed(0)} MB/s`;
  }
}
