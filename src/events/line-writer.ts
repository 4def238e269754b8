import { write } from "node:fs";
import type { Writable } from "node:stream";

/** Writes a text somewhere and calls `done` when it is out, or could not be. */
type WriteText = (text: string, done: (error?: Error | null) => void) => void;

const maxHeldCharacters = 1 << 26;
const retryMs = 10;

/**
 * Writes lines in order without ever waiting: what the target does not take yet is held, up to 64 Mi characters, and
 * then lines are refused. A target that fails (a closed pipe) takes no more.
 */
export class LineWriter {
  readonly #write: WriteText;
  #held: string[] = [];
  #numHeldCharacters = 0;
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
   * Writes one line.
   * @returns whether it was taken: not when too much is held, or the target has failed
   */
  writeLine(line: string): boolean {
    if (this.#failed || this.#numHeldCharacters + line.length > maxHeldCharacters) return false;
    this.#held.push(line, "\n");
    this.#numHeldCharacters += line.length + 1;
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
    const text = this.#held.join("");
    this.#held = [];
    this.#write(text, (error) => {
      this.#numHeldCharacters -= text.length;
      if (error) this.#fail();
      this.#writeHeld();
    });
  }

  #fail(): void {
    this.#failed = true;
    this.#held = [];
    this.#numHeldCharacters = 0;
  }
}

function streamWriter(stream: Writable): WriteText {
  // Without a listener the error event of a closed pipe would end the process.
  stream.on("error", () => {});
  return (text, done) => stream.write(text, done);
}

function descriptorWriter(descriptor: number): WriteText {
  const writeBytes = (bytes: Uint8Array, done: (error?: Error | null) => void): void => {
    write(descriptor, bytes, (error, numWritten) => {
      // A descriptor that does not block says so when its reader is behind.
      if (error?.code === "EAGAIN") setTimeout(() => writeBytes(bytes, done), retryMs);
      else if (error !== null || numWritten === bytes.length) done(error);
      else writeBytes(bytes.subarray(numWritten), done);
    });
  };
  return (text, done) => writeBytes(Buffer.from(text), done);
}
