import { TroupeError } from "../../errors/index.ts";

const alignment = 64;
/** Tensors smaller than this lie together in buffers of this size; a larger one has a buffer to itself. */
const sharedBytes = 1 << 20;

/** Where a tensor lies. */
export interface Stretch {
  readonly buffer: SharedArrayBuffer;
  /** A multiple of 64 bytes. */
  readonly begin: number;
}

/**
 * The memory in which tensors wait for the disk: never more than was declared. It is shared with the writer's thread. A
 * buffer is used again by a tensor of the same size, so that a process that saves the same often does not grow; what nobody
 * uses makes room for what does.
 */
export class StagingMemory {
  readonly limitBytes: number;
  /** By size, in bytes. */
  readonly #free = new Map<number, SharedArrayBuffer[]>();
  #heldBytes = 0;

  constructor(limitBytes: number) {
    this.limitBytes = limitBytes;
  }

  /** Memory for one save, empty. */
  open(): StagingArea {
    return new StagingArea(this);
  }

  /** @throws {TroupeError} `CHECKPOINT_STAGING` where that is more than was declared, what others hold counted */
  take(sizeBytes: number): SharedArrayBuffer {
    const reused = this.#free.get(sizeBytes)?.pop();
    if (reused !== undefined) return reused;
    this.#makeRoom(sizeBytes);
    return new SharedArrayBuffer(sizeBytes);
  }

  /** Makes a buffer of several tensors longer. @throws {TroupeError} as {@link take} */
  grow(buffer: SharedArrayBuffer, sizeBytes: number): void {
    if (sizeBytes <= buffer.byteLength) return;
    this.#makeRoom(sizeBytes - buffer.byteLength);
    buffer.grow(sizeBytes);
  }

  /** Takes memory back. */
  release(buffers: readonly SharedArrayBuffer[]): void {
    for (const buffer of buffers) {
      const { byteLength } = buffer;
      // One that is not full is of no other's size.
      if (byteLength < sharedBytes) this.#heldBytes -= byteLength;
      else this.#free.set(byteLength, [...(this.#free.get(byteLength) ?? []), buffer]);
    }
  }

  /** A full buffer of several tensors that nobody uses, where there is one. */
  takeShared(): SharedArrayBuffer | undefined {
    return this.#free.get(sharedBytes)?.pop();
  }

  #makeRoom(moreBytes: number): void {
    for (const [sizeBytes, buffers] of this.#free) {
      while (this.#heldBytes + moreBytes > this.limitBytes && buffers.pop() !== undefined)
        this.#heldBytes -= sizeBytes;
      if (buffers.length === 0) this.#free.delete(sizeBytes);
    }
    if (this.#heldBytes + moreBytes > this.limitBytes) throw this.#full(moreBytes);
    this.#heldBytes += moreBytes;
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
  readonly #memory: StagingMemory;
  readonly #buffers: SharedArrayBuffer[] = [];
  /** The one that small tensors go to now. */
  #shared: SharedArrayBuffer | undefined;
  #usedBytes = 0;
  #released = false;

  constructor(memory: StagingMemory) {
    this.#memory = memory;
  }

  /**
   * Memory for a tensor.
   * @throws {TroupeError} `CHECKPOINT_STAGING`
   */
  take(sizeBytes: number): Stretch {
    if (sizeBytes >= sharedBytes) {
      const buffer = this.#memory.take(sizeBytes);
      this.#buffers.push(buffer);
      return { buffer, begin: 0 };
    }
    let begin = Math.ceil(this.#usedBytes / alignment) * alignment;
    let buffer = this.#shared;
    if (buffer === undefined || begin + sizeBytes > sharedBytes) {
      begin = 0;
      buffer = this.#another();
    }
    this.#memory.grow(buffer, begin + sizeBytes);
    this.#usedBytes = begin + sizeBytes;
    return { buffer, begin };
  }

  /** Gives the memory back; a second time does nothing. */
  release(): void {
    if (this.#released) return;
    this.#released = true;
    this.#memory.release(this.#buffers);
  }

  /** The first one of a save grows with what is in it: a small save is not to hold what a large one could use. */
  #another(): SharedArrayBuffer {
    const reused = this.#shared === undefined ? undefined : this.#memory.takeShared();
    this.#shared = reused ?? new SharedArrayBuffer(0, { maxByteLength: sharedBytes });
    this.#buffers.push(this.#shared);
    return this.#shared;
  }
}
