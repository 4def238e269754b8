import type { LaneIndex } from "../protocol/lane.ts";
import { type Credits, numLanes } from "./credits.ts";

/** Bytes that {@link ReportedCredits} counts in, and that a report takes. */
export const reportBytes = numLanes * Int32Array.BYTES_PER_ELEMENT;

/**
 * The counts of one end of a link whose ends share no memory: every packet begins with what its sender has taken, and one
 * goes for that alone when enough has come together. So nobody has to ask. Of an actor that ends, its process sends the last
 * report; of one that is killed with its process, what it took last counts as lost.
 */
export class ReportedCredits implements Credits {
  readonly #every: number;
  readonly #taken: Int32Array;
  readonly #announced = new Int32Array(numLanes);
  readonly #heard = new Int32Array(numLanes);

  /**
   * @param every - messages of a lane after which the other end is told; at most half of its window, or it would wait for ever
   * @param taken - {@link reportBytes} to count in, zeroed
   */
  constructor(every: number, taken: SharedArrayBuffer) {
    this.#every = every;
    this.#taken = new Int32Array(taken);
  }

  takenByPeer(lane: LaneIndex): number {
    return this.#heard[lane] as number;
  }

  askForCredit(): void {}

  take(lane: LaneIndex): boolean {
    const numTaken = ((this.#taken[lane] as number) + 1) | 0;
    this.#taken[lane] = numTaken;
    if (((numTaken - (this.#announced[lane] as number)) | 0) < this.#every) return false;
    this.#announced[lane] = numTaken;
    return true;
  }

  /** What is to stand before the next packet. */
  report(): Int32Array {
    this.#announced.set(this.#taken);
    return this.#taken.slice();
  }

  /**
   * Takes in what stands before a packet and returns the rest.
   * @throws {RangeError} when there is less than a report
   */
  hear(bytes: Uint8Array<ArrayBuffer>): Uint8Array {
    this.#heard.set(new Int32Array(bytes.slice(0, reportBytes).buffer, 0, numLanes));
    return bytes.subarray(reportBytes);
  }
}
