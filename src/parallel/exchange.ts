import { TroupeError } from "../errors.ts";

interface Meeting<T> {
  readonly values: (T | undefined)[];
  arrived: number;
  asked: { readonly resolve: (values: T[]) => void; readonly reject: (reason: Error) => void } | undefined;
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
  #aborted: Error | undefined;

  /** @param numRanks - how many contributions make a key whole */
  constructor(numRanks: number) {
    this.numRanks = numRanks;
  }

  /**
   * Adds one rank's value.
   * @throws {TroupeError} `COLLECTIVE_TWICE` when that rank has contributed to `key` before
   */
  contribute(key: string, rank: number, value: T): void {
    if (this.#aborted !== undefined) return;
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

  /** @returns all ranks' values in rank order, once the last has come; one caller a key. @throws the reason of {@link abort} */
  async all(key: string): Promise<T[]> {
    if (this.#aborted !== undefined) throw this.#aborted;
    const meeting = this.#meetingAt(key);
    return new Promise((resolve, reject) => {
      meeting.asked = { resolve, reject };
      if (meeting.arrived === this.numRanks) this.#complete(key, meeting);
    });
  }

  /** A rank is gone: whoever waits, now or later, gets `reason` instead of values. */
  abort(reason: Error): void {
    this.#aborted ??= reason;
    for (const meeting of this.#meetings.values()) meeting.asked?.reject(reason);
    this.#meetings.clear();
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
        asked: undefined,
      };
      this.#meetings.set(key, meeting);
    }
    return meeting;
  }

  #complete(key: string, meeting: Meeting<T>): void {
    if (meeting.asked === undefined) return;
    this.#meetings.delete(key);
    meeting.asked.resolve(meeting.values as T[]);
  }
}
