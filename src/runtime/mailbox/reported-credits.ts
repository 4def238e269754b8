import type { LaneIndex } from "../protocol/lane.ts";
import { type Credits, numLanes } from "./credits.ts";

/** Size of the counters of {@link ReportedCredits}, and of a report, in bytes. */
export const reportBytes = numLanes * Int32Array.BYTES_PER_ELEMENT;

/**
 * The counters of one end of a link whose ends share no memory. Every packet begins with a report of what its sender has
 * taken; when enough has accumulated, a packet is sent for the report alone, so that no end has to ask. When an actor ends,
 * its process sends the last report. When the process is killed, the messages taken since its last report count as lost.
 */
export class ReportedCredits implements Credits {
  readonly #every: number;
  readonly #taken: Int32Array;
  readonly #announced = new Int32Array(numLanes);
  readonly #heard = new Int32Array(numLanes);

  /**
   * @param every - messages of a lane between two reports; at most half of the window, or the other end would wait forever
   * @param taken - {@link reportBytes} of zeroed memory for the counters
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

  /** Returns the report to put before the next packet. */
  report(): Int32Array {
    this.#announced.set(this.#taken);
    return this.#taken.slice();
  }

  /** Reads the report before a packet and returns the packet. @throws {RangeError} if there are fewer bytes than a report */
  hear(bytes: Uint8Array<ArrayBuffer>): Uint8Array {
    this.#heard.set(new Int32Array(bytes.slice(0, reportBytes).buffer, 0, numLanes));
    return bytes.subarray(reportBytes);
  }
}
