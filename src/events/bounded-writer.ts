import { close, write, writeSync } from "node:fs";
import type { Writable } from "node:stream";

/** Writes bytes somewhere and calls `done` when they are out, or could not be. */
type WriteBytes = (bytes: Uint8Array, done: (error?: Error | null) => void) => void;

/** Bytes held for a target that is slow. */
const maxHeldBytes = 1 << 26;
/** Much at once is written at once, whenever that is. */
const promptBytes = 1 << 18;
const retryMs = 10;
/** How far the files of a run may be behind it: nobody sees less, and a killed run loses no more. */
export const fileWriteMs = 200;

/** How a {@link BoundedWriter} writes. */
export interface BoundedWriterOptions {
  /** What comes within so many milliseconds goes out together: a write costs as much as making many lines. 0: at once */
  readonly everyMs?: number;
}

/**
 * Writes in order without ever waiting: what the target does not take yet is held, up to 64 MiB, and then what comes is
 * refused, whole. A target that fails (a closed pipe, a full disk) takes no more. What is held for a descriptor when the
 * process ends by itself is written then; one that is killed leaves out what came in its last `everyMs`.
 */
export class BoundedWriter {
  readonly #write: WriteBytes;
  readonly #descriptor: number | undefined;
  readonly #everyMs: number;
  /** Texts that follow each other are one. */
  #held: (string | Uint8Array)[] = [];
  #numHeldBytes = 0;
  #writing = false;
  #timer: NodeJS.Timeout | undefined;
  #failed = false;
  #whenEmpty: (() => void)[] = [];

  /**
   * @param target - a stream, or a file descriptor: then even a pipe that nobody reads holds up no one, as writing to
   * `process.stdout` would
   */
  constructor(target: Writable | number, { everyMs = 0 }: BoundedWriterOptions = {}) {
    this.#descriptor = typeof target === "number" ? target : undefined;
    this.#write = typeof target === "number" ? descriptorWriter(target) : streamWriter(target);
    this.#everyMs = everyMs;
  }

  /**
   * Writes a text, or bytes that nobody changes afterwards.
   * @returns whether they were taken: not when too much is held, or the target has failed
   */
  write(data: string | Uint8Array): boolean {
    const numBytes = typeof data === "string" ? Buffer.byteLength(data) : data.length;
    if (this.#failed || this.#numHeldBytes + numBytes > maxHeldBytes) return false;
    this.#hold(data);
    this.#numHeldBytes += numBytes;
    if (this.#writing) return true;
    if (this.#everyMs === 0 || this.#numHeldBytes >= promptBytes) this.#writeHeld();
    else this.#timer ??= this.#writeLater();
    return true;
  }

  /** Waits until everything taken is out, or the target has failed. */
  flush(): Promise<void> {
    if (!this.#writing) this.#writeHeld();
    if (!this.#writing) return Promise.resolve();
    return new Promise((resolve) => {
      this.#whenEmpty.push(resolve);
    });
  }

  /** Writes what waits for its time; for the end of the process, when there is no other. */
  writeLast(): void {
    // Behind what is being written it could come before it.
    if (this.#writing || this.#descriptor === undefined) return;
    try {
      writeSync(this.#descriptor, this.#takeHeld());
    } catch {
      // There is nobody left to be told.
    }
  }

  #hold(data: string | Uint8Array): void {
    const last = this.#held.length - 1;
    if (typeof data === "string" && typeof this.#held[last] === "string") this.#held[last] += data;
    else this.#held.push(data);
  }

  #writeLater(): NodeJS.Timeout {
    writeAtExit(this);
    return setTimeout(() => this.#writeHeld(), this.#everyMs).unref();
  }

  #writeHeld(): void {
    const bytes = this.#takeHeld();
    this.#writing = bytes.length > 0;
    if (!this.#writing) {
      for (const resolve of this.#whenEmpty.splice(0)) resolve();
      return;
    }
    this.#write(bytes, (error) => {
      this.#numHeldBytes -= bytes.length;
      if (error) this.#fail();
      this.#writeHeld();
    });
  }

  #takeHeld(): Uint8Array {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    waiting.delete(this);
    const parts = this.#held.map((part) => (typeof part === "string" ? Buffer.from(part) : part));
    this.#held = [];
    return parts.length === 1 ? (parts[0] as Uint8Array) : Buffer.concat(parts);
  }

  #fail(): void {
    this.#failed = true;
    this.#held = [];
    this.#numHeldBytes = 0;
  }
}

/** Writers that hold something until its time comes. */
const waiting = new Set<BoundedWriter>();
let hasListener = false;

/** Their timers keep no process from ending: it writes what they hold. */
function writeAtExit(writer: BoundedWriter): void {
  waiting.add(writer);
  if (hasListener) return;
  hasListener = true;
  process.on("exit", () => {
    for (const each of waiting) each.writeLast();
  });
}

/** Closes a descriptor; that it could not be is nobody's news any more. */
export function closeDescriptor(descriptor: number): Promise<void> {
  return new Promise((resolve) => close(descriptor, () => resolve()));
}

function streamWriter(stream: Writable): WriteBytes {
  // Without a listener the error event of a closed pipe would end the process.
  stream.on("error", () => {});
  return (bytes, done) => stream.write(bytes, done);
}

function descriptorWriter(descriptor: number): WriteBytes {
  const writeBytes: WriteBytes = (bytes, done) => {
    write(descriptor, bytes, (error, numWritten) => {
      // A descriptor that does not block says so when its reader is behind.
      if (error?.code === "EAGAIN") setTimeout(() => writeBytes(bytes, done), retryMs);
      else if (error !== null || numWritten === bytes.length) done(error);
      else writeBytes(bytes.subarray(numWritten), done);
    });
  };
  return writeBytes;
}
