import { TroupeError } from "../../../errors/index.ts";

interface Collective<T> {
  readonly values: (T | undefined)[];
  arrived: number;
  asked: { readonly resolve: (values: T[]) => void; readonly reject: (reason: Error) => void } | undefined;
}

/**
 * Collects one value a rank under each key, and hands all of them out in rank order once the last has come. A key names a place in
 * the program (`reduce/12/h.3`: step 12, block h.3), so ranks need no common order and cannot deadlock.
 */
export class Exchange<T> {
  readonly numRanks: number;
  readonly #collectives = new Map<string, Collective<T>>();
  #aborted: Error | undefined;

  /** @param numRanks - contributions that complete a key */
  constructor(numRanks: number) {
    this.numRanks = numRanks;
  }

  /** Adds one rank's value. @throws {TroupeError} `COLLECTIVE_TWICE` when that rank has contributed to `key` before */
  contribute(key: string, rank: number, value: T): void {
    if (this.#aborted !== undefined) return;
    const collective = this.#collectiveAt(key);
    if (collective.values[rank] !== undefined)
      throw new TroupeError("COLLECTIVE_TWICE", {
        where: "exchange",
        expected: `one contribution of rank ${rank} to ${key}`,
        got: "two",
        fields: { key, rank },
      });
    collective.values[rank] = value;
    collective.arrived += 1;
    if (collective.arrived === this.numRanks) this.#complete(key, collective);
  }

  /** @returns all ranks' values in rank order, once the last has come; one caller a key. @throws the reason of {@link abort} */
  async all(key: string): Promise<T[]> {
    if (this.#aborted !== undefined) throw this.#aborted;
    const collective = this.#collectiveAt(key);
    return new Promise((resolve, reject) => {
      collective.asked = { resolve, reject };
      if (collective.arrived === this.numRanks) this.#complete(key, collective);
    });
  }

  /** A rank is gone: rejects all waits, present and future, with `reason`. */
  abort(reason: Error): void {
    this.#aborted ??= reason;
    for (const collective of this.#collectives.values()) collective.asked?.reject(reason);
    this.#collectives.clear();
  }

  /** @returns the ranks that each incomplete key waits for: the local picture of a hang */
  pending(): { readonly key: string; readonly missing: number[] }[] {
    return [...this.#collectives].map(([key, collective]) => ({
      key,
      missing: Array.from({ length: this.numRanks }, (_, rank) => rank).filter(
        (rank) => collective.values[rank] === undefined,
      ),
    }));
  }

  #collectiveAt(key: string): Collective<T> {
    let collective = this.#collectives.get(key);
    if (collective === undefined) {
      collective = {
        values: new Array<T | undefined>(this.numRanks).fill(undefined),
        arrived: 0,
        asked: undefined,
      };
      this.#collectives.set(key, collective);
    }
    return collective;
  }

  #complete(key: string, collective: Collective<T>): void {
    if (collective.asked === undefined) return;
    this.#collectives.delete(key);
    collective.asked.resolve(collective.values as T[]);
  }
}
