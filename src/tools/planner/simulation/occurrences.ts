/** What has come to pass in a simulation, by key; who waits for what has not; and the rendezvous of several. */
export class Occurrences {
  readonly #come = new Set<string>();
  readonly #waiting = new Map<string, (() => void)[]>();
  readonly #arrived = new Map<string, number>();

  has(key: string): boolean {
    return this.#come.has(key);
  }

  /** Something has come: who waits for it goes on, in the order of waiting. */
  come(key: string): void {
    this.#come.add(key);
    const waiting = this.#waiting.get(key);
    if (waiting === undefined) return;
    this.#waiting.delete(key);
    for (const then of waiting) then();
  }

  /** It is as if it had never come. */
  forget(key: string): void {
    this.#come.delete(key);
  }

  /** Calls back once a key has come, at once where it has. */
  once(key: string, then: () => void): void {
    if (this.#come.has(key)) {
      then();
      return;
    }
    const waiting = this.#waiting.get(key);
    if (waiting === undefined) this.#waiting.set(key, [then]);
    else waiting.push(then);
  }

  /** Counts one arrival at a rendezvous of `count`. @returns whether it was the last */
  meet(key: string, count: number): boolean {
    const arrived = (this.#arrived.get(key) ?? 0) + 1;
    if (arrived < count) this.#arrived.set(key, arrived);
    else this.#arrived.delete(key);
    return arrived === count;
  }
}
