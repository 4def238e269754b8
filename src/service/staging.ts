import { TroupeError } from "../errors.ts";

const alignment = 64;

/**
 * The memory in which tensors wait for the disk: never more than was declared. It is shared with the writer's thread, grows
 * when it is needed and is used again by later saves, so a process that saves often does not grow.
 */
export class StagingMemory {
  readonly limitBytes: number;
  readonly #free: SharedArrayBuffer[] = [];
  #heldBytes = 0;

  constructor(limitBytes: number) {
    this.limitBytes = limitBytes;
  }

  /** Memory for one save, empty. */
  open(): StagingArea {
    const reused = this.#free.pop();
    const buffer = reused ?? new SharedArrayBuffer(0, { maxByteLength: this.limitBytes });
    return new StagingArea(this, buffer);
  }

  /**
   * Makes `buffer` at least so large.
   * @throws {TroupeError} `CHECKPOINT_STAGING` where that is more than was declared, what others hold counted
   */
  grow(buffer: SharedArrayBuffer, sizeBytes: number): void {
    const moreBytes = sizeBytes - buffer.byteLength;
    if (moreBytes <= 0) return;
    // What nobody uses makes room, the first time it is needed.
    while (this.#heldBytes + moreBytes > this.limitBytes && this.#free.length > 0) {
      this.#heldBytes -= this.#free.pop()?.byteLength ?? 0;
    }
    if (this.#heldBytes + moreBytes > this.limitBytes) throw this.#full(moreBytes);
    buffer.grow(sizeBytes);
    this.#heldBytes += moreBytes;
  }

  /** Takes memory back for the next save. */
  release(buffer: SharedArrayBuffer): void {
    this.#free.push(buffer);
  }

  #full(moreBytes: number): TroupeError {
    return new TroupeError(
      "CHECKPOINT_STAGING",
      {
        where: "checkpoint service",
        expected: `at most ${this.limitBytes} bytes of tensors to wait at once`,
        got: `${this.#heldBytes} and ${moreBytes} more`,
        hint: "await the saves before, or declare more as stagingBytes",
      },
      { fields: { limitBytes: this.limitBytes, heldBytes: this.#heldBytes, moreBytes } },
    );
  }
}

/** The memory of one save. */
export class StagingArea {
  readonly buffer: SharedArrayBuffer;
  readonly #memory: StagingMemory;
  #usedBytes = 0;
  #released = false;

  constructor(memory: StagingMemory, buffer: SharedArrayBuffer) {
    this.#memory = memory;
    this.buffer = buffer;
  }

  /**
   * A stretch of this area.
   * @returns where it begins, a multiple of 64 bytes
   * @throws {TroupeError} `CHECKPOINT_STAGING`
   */
  take(sizeBytes: number): number {
    const begin = Math.ceil(this.#usedBytes / alignment) * alignment;
    this.#memory.grow(this.buffer, begin + sizeBytes);
    this.#usedBytes = begin + sizeBytes;
    return begin;
  }

  /** Gives the memory back; a second time does nothing. */
  release(): void {
    if (this.#released) return;
    this.#released = true;
    this.#memory.release(this.buffer);
  }
}
