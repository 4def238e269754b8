import { TroupeError } from "../../errors/index.ts";

const alignment = 64;
/** Tensors smaller than this share buffers of this size; a larger one has its own. */
const sharedBytes = 1 << 20;

/** Location of a tensor in memory. */
export interface Stretch {
  readonly buffer: SharedArrayBuffer;
  /** Offset in bytes, a multiple of 64. */
  readonly begin: number;
}

/**
 * Memory for tensors that wait to be written, limited to `limitBytes` and shared with the writer's thread. Buffers are reused by
 * tensors of the same size, so that repeated saves do not allocate; unused ones are freed to make room.
 */
export class StagingMemory {
  readonly limitBytes: number;
  /** Free buffers by size in bytes. */
  readonly #free = new Map<number, SharedArrayBuffer[]>();
  #heldBytes = 0;

  constructor(limitBytes: number) {
    this.limitBytes = limitBytes;
  }

  /** Opens an empty area for one save. */
  open(): StagingArea {
    return new StagingArea(this);
  }

  /** @throws {TroupeError} `CHECKPOINT_STAGING` if all areas together would exceed the limit */
  take(sizeBytes: number): SharedArrayBuffer {
    const reused = this.#free.get(sizeBytes)?.pop();
    if (reused !== undefined) return reused;
    this.#makeRoom(sizeBytes);
    return new SharedArrayBuffer(sizeBytes);
  }

  /** Grows a shared buffer. @throws {TroupeError} as {@link take} */
  grow(buffer: SharedArrayBuffer, sizeBytes: number): void {
    if (sizeBytes <= buffer.byteLength) return;
    this.#makeRoom(sizeBytes - buffer.byteLength);
    buffer.grow(sizeBytes);
  }

  /** Takes buffers back. */
  release(buffers: readonly SharedArrayBuffer[]): void {
    for (const buffer of buffers) {
      const { byteLength } = buffer;
      // A shared buffer that has not grown fully fits no other use.
      if (byteLength < sharedBytes) this.#heldBytes -= byteLength;
      else this.#free.set(byteLength, [...(this.#free.get(byteLength) ?? []), buffer]);
    }
  }

  /** Returns a free shared buffer of full size, if any. */
  takeShared(): SharedArrayBuffer | undefined {
    return this.#free.get(sharedBytes)?.pop();
  }

  #makeRoom(moreBytes: number): void {
    for (const [sizeBytes, buffers] of this.#free) {
      while (this.#heldBytes + moreBytes > this.limitBytes && buffers.pop() !== undefined)
        this.#heldBytes -= sizeBytes;
      if (buffers.length === 0) this.#free.delete(sizeBytes);
    }
    if (this.#heldBytes + moreBytes > this.limitBytes)
      throw new TroupeError("CHECKPOINT_STAGING", {
        where: "checkpoint service",
        expected: `at most ${this.limitBytes} bytes of waiting tensors`,
        got: `${this.#heldBytes} and ${moreBytes} more`,
        hint: "await earlier saves, or raise stagingBytes",
        fields: { limitBytes: this.limitBytes, heldBytes: this.#heldBytes, moreBytes },
      });
    this.#heldBytes += moreBytes;
  }
}

/** The memory of one save. */
export class StagingArea {
  readonly #memory: StagingMemory;
  readonly #buffers: SharedArrayBuffer[] = [];
  /** The buffer of the next small tensors. */
  #shared: SharedArrayBuffer | undefined;
  #usedBytes = 0;
  #released = false;

  constructor(memory: StagingMemory) {
    this.#memory = memory;
  }

  /** Allocates memory for a tensor. @throws {TroupeError} `CHECKPOINT_STAGING` */
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

  /** Releases the memory; further calls do nothing. */
  release(): void {
    if (this.#released) return;
    this.#released = true;
    this.#memory.release(this.#buffers);
  }

  /** The first shared buffer of a save grows as needed, so that a small save does not hold a full one. */
  #another(): SharedArrayBuffer {
    const reused = this.#shared === undefined ? undefined : this.#memory.takeShared();
    this.#shared = reused ?? new SharedArrayBuffer(0, { maxByteLength: sharedBytes });
    this.#buffers.push(this.#shared);
    return this.#shared;
  }
}
