import type { LaneIndex } from "../protocol/lane.ts";
import { type Credits, numLanes } from "./credits.ts";

const takenWord = 0;
const wantedWord = takenWord + numLanes;
const wantsWord = wantedWord + numLanes;
const wordsPerDirection = wantsWord + numLanes;

/** Size of the counters of one link, in bytes. */
export const creditCountersBytes = 2 * wordsPerDirection * Int32Array.BYTES_PER_ELEMENT;

/** The counters of a link in shared memory: when the receiver dies, the sender knows exactly which messages were lost. */
export class CreditCounters implements Credits {
  readonly #words: Int32Array;
  readonly #outBase: number;
  readonly #inBase: number;

  /** @param side - 0 for one end, 1 for the other */
  constructor(buffer: ArrayBufferLike, side: 0 | 1, byteOffset = 0) {
    this.#words = new Int32Array(buffer, byteOffset, 2 * wordsPerDirection);
    this.#outBase = side * wordsPerDirection;
    this.#inBase = (1 - side) * wordsPerDirection;
  }

  takenByPeer(lane: LaneIndex): number {
    return Atomics.load(this.#words, this.#outBase + takenWord + lane);
  }

  askForCredit(lane: LaneIndex, numTaken: number): void {
    Atomics.store(this.#words, this.#outBase + wantedWord + lane, numTaken);
    Atomics.store(this.#words, this.#outBase + wantsWord + lane, 1);
  }

  take(lane: LaneIndex): boolean {
    const base = this.#inBase + lane;
    const numTaken = (Atomics.add(this.#words, base + takenWord, 1) + 1) | 0;
    if (Atomics.load(this.#words, base + wantsWord) === 0) return false;
    if (((numTaken - Atomics.load(this.#words, base + wantedWord)) | 0) < 0) return false;
    Atomics.store(this.#words, base + wantsWord, 0);
    return true;
  }
}
