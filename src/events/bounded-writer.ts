import { close, write } from "node:fs";
import type { Writable } from "node:stream";

/** Writes bytes somewhere and calls `done` when they are out, or could not be. */
type WriteBytes = (bytes: Uint8Array, done: (error?: Error | null) => void) => void;

/** Bytes held for a target that is slow. */
const maxHeldBytes = 1 << 26;
const retryMs = 10;

/**
 * Writes in order without ever waiting: what the target does not take yet is held, up to 64 MiB, and then what comes is
 * refused, whole. A target that fails (a closed pipe, a full disk) takes no more.
 */
export class BoundedWriter {
  readonly #write: WriteBytes;
  #held: Uint8Array[] = [];
  #numHeldBytes = 0;
  #writing = false;
  #failed = false;
  #whenEmpty: (() => void)[] = [];

  /**
   * @param target - a stream, or a file descriptor: then even a pipe that nobody reads holds up no one, as writing to
   * `process.stdout` would
   */
  constructor(target: Writable | number) {
    this.#write = typeof target === "number" ? descriptorWriter(target) : streamWriter(target);
  }

  /**
   * Writes a text, or bytes that nobody changes afterwards.
   * @returns whether they were taken: not when too much is held, or the target has failed
   */
  write(data: string | Uint8Array): boolean {
    const bytes = typeof data === "string" ? Buffer.from(data) : data;
    if (this.#failed || this.#numHeldBytes + bytes.length > maxHeldBytes) return false;
    this.#held.push(bytes);
    this.#numHeldBytes += bytes.length;
    if (!this.#writing) this.#writeHeld();
    return true;
  }

  /** Waits until everything taken is out, or the target has failed. */
  flush(): Promise<void> {
    if (!this.#writing) return Promise.resolve();
    return new Promise((resolve) => {
      this.#whenEmpty.push(resolve);
    });
  }

  #writeHeld(): void {
    if (this.#held.length === 0) {
      this.#writing = false;
      for (const resolve of this.#whenEmpty.splice(0)) resolve();
      return;
    }
    this.#writing = true;
    const bytes = Buffer.concat(this.#held);
    this.#held = [];
    this.#write(bytes, (error) => {
      this.#numHeldBytes -= bytes.length;
      if (error) this.#fail();
      this.#writeHeld();
    });
  }

  #fail(): void {
    this.#failed = true;
    this.#held = [];
    this.#numHeldBytes = 0;
  }
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
