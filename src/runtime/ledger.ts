import type { Lane } from "./protocol.ts";

/** Indices of the lanes, in the order they are served. */
export const laneIndex = { control: 0, data: 1, telemetry: 2 } as const;

/** One of 0 (control), 1 (data), 2 (telemetry). */
export type LaneIndex = 0 | 1 | 2;

/** The lane of a kind, given those of an actor's kinds that are not `data`. */
export function laneOf(lanes: Readonly<Record<string, Lane>>, kind: string): LaneIndex {
  const lane = lanes[kind];
  return lane === undefined ? laneIndex.data : laneIndex[lane];
}

const wordsPerDirection = 4;
const wantsCreditWord = 3;

/** Bytes one link's ledger takes. */
export const ledgerSizeBytes = 2 * wordsPerDirection * Int32Array.BYTES_PER_ELEMENT;

/**
 * The books of one link, shared by both ends: how many messages of each lane the receiver has taken to
 * handle. From it come the sender's credit and, when the receiver dies, exactly what was lost.
 */
export class Ledger {
  readonly #words: Int32Array;
  readonly #outBase: number;
  readonly #inBase: number;

  /** @param side - 0 for one end, 1 for the other */
  constructor(buffer: ArrayBufferLike, side: 0 | 1) {
    this.#words = new Int32Array(buffer);
    this.#outBase = side * wordsPerDirection;
    this.#inBase = (1 - side) * wordsPerDirection;
  }

  /** Messages this end sent that the other has taken; wraps at 2^31, so compare by difference. */
  takenByPeer(lane: LaneIndex): number {
    return Atomics.load(this.#words, this.#outBase + lane);
  }

  /** Asks the other end to say when it has taken more. */
  askForCredit(): void {
    Atomics.store(this.#words, this.#outBase + wantsCreditWord, 1);
  }

  /** Enters that this end took one message. */
  take(lane: LaneIndex): void {
    Atomics.add(this.#words, this.#inBase + lane, 1);
  }

  /** Whether the other end waits for credit. */
  get peerWantsCredit(): boolean {
    return Atomics.load(this.#words, this.#inBase + wantsCreditWord) !== 0;
  }

  /** Clears the other end's wish; the caller then tells it. */
  grantCredit(): void {
    Atomics.store(this.#words, this.#inBase + wantsCreditWord, 0);
  }
}
