import type { LaneIndex } from "../protocol/lane.ts";

const numLanes = 3;
const takenWord = 0;
const wantedWord = takenWord + numLanes;
const wantsWord = wantedWord + numLanes;
const wordsPerDirection = wantsWord + numLanes;

/** Bytes the counters of one link take. */
export const creditCountersBytes = 2 * wordsPerDirection * Int32Array.BYTES_PER_ELEMENT;

/**
 * The counters of one link, shared by both ends: how many messages of each lane the receiver has taken to
 * handle. From it come the sender's credit and, when the receiver dies, exactly what was lost.
 * Counts wrap at 2^31: compare them by difference.
 */
export class CreditCounters {
  readonly #words: Int32Array;
  readonly #outBase: number;
  readonly #inBase: number;

  /** @param side - 0 for one end, 1 for the other */
  constructor(buffer: ArrayBufferLike, side: 0 | 1, byteOffset = 0) {
    this.#words = new Int32Array(buffer, byteOffset, 2 * wordsPerDirection);
    this.#outBase = side * wordsPerDirection;
    this.#inBase = (1 - side) * wordsPerDirection;
  }

  /** Messages this end sent that the other has taken. */
  takenByPeer(lane: LaneIndex): number {
    return Atomics.load(this.#words, this.#outBase + takenWord + lane);
  }

  /** Asks the other end to say when it has taken `numTaken` in all. */
  askForCredit(lane: LaneIndex, numTaken: number): void {
    Atomics.store(this.#words, this.#outBase + wantedWord + lane, numTaken);
    Atomics.store(this.#words, this.#outBase + wantsWord + lane, 1);
  }

  /** Enters that this end took one message; returns whether that is the one the other end waits for. */
  take(lane: LaneIndex): boolean {
    const base = this.#inBase + lane;
    const numTaken = (Atomics.add(this.#words, base + takenWord, 1) + 1) | 0;
    if (Atomics.load(this.#words, base + wantsWord) === 0) return false;
    if (((numTaken - Atomics.load(this.#words, base + wantedWord)) | 0) < 0) return false;
    Atomics.store(this.#words, base + wantsWord, 0);
    return true;
  }
}
