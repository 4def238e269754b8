import { TroupeError } from "../errors.ts";

interface Meeting<T> {
  readonly values: (T | undefined)[];
  arrived: number;
  whole: ((values: T[]) => void) | undefined;
}

/**
 * The bookkeeping under every `local` collective: under one key each rank contributes one value, and whoever asks gets
 * all of them in rank order once the last has come. Values pass by reference: nothing is copied, collectives alias.
 *
 * Keys name a place in the program ("reduce/12/3": step 12, block 3), so ranks may come early, late or interleaved:
 * no order between different keys is needed and none can deadlock.
 */
export class Exchange<T> {
  readonly numRanks: number;
  readonly #meetings = new Map<string, Meeting<T>>();

  /** @param numRanks - how many contributions make a key whole */
  constructor(numRanks: number) {
    this.numRanks = numRanks;
  }

  /**
   * Adds one rank's value.
   * @throws {TroupeError} `COLLECTIVE_TWICE` when that rank has contributed to `key` before
   */
  contribute(key: string, rank: number, value: T): void {
    const meeting = this.#meetingAt(key);
    if (meeting.values[rank] !== undefined) {
      throw new TroupeError(
        "COLLECTIVE_TWICE",
        `[exchange] expected one contribution of rank ${rank} to ${key}: got two`,
        {
          fields: { key, rank },
        },
      );
    }
    meeting.values[rank] = value;
    meeting.arrived += 1;
    if (meeting.arrived === this.numRanks) this.#complete(key, meeting);
  }

  /** @returns all ranks' values in rank order, once the last has come; one caller a key */
  async all(key: string): Promise<T[]> {
    const meeting = this.#meetingAt(key);
    return new Promise((resolve) => {
      meeting.whole = resolve;
      if (meeting.arrived === this.numRanks) this.#complete(key, meeting);
    });
  }

  /** @returns for each key that is not whole, the ranks it waits for: what a hang looks like from here */
  pending(): { readonly key: string; readonly missing: number[] }[] {
    return [...this.#meetings].map(([key, meeting]) => ({
      key,
      missing: Array.from({ length: this.numRanks }, (_, rank) => rank).filter(
        (rank) => meeting.values[rank] === undefined,
      ),
    }));
  }

  #meetingAt(key: string): Meeting<T> {
    let meeting = this.#meetings.get(key);
    if (meeting === undefined) {
      meeting = {
        values: new Array<T | undefined>(this.numRanks).fill(undefined),
        arrived: 0,
        whole: undefined,
      };
      this.#meetings.set(key, meeting);
    }
    return meeting;
  }

  #complete(key: string, meeting: Meeting<T>): void {
    if (meeting.whole === undefined) return;
    this.#meetings.delete(key);
    meeting.whole(meeting.values as T[]);
  }
}
