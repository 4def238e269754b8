/** Events in a simulation, by key, with callbacks for those to come and rendezvous of several arrivals. */
export class Occurrences {
  readonly #come = new Set<string>();
  readonly #waiting = new Map<string, (() => void)[]>();
  readonly #arrived = new Map<string, number>();

  has(key: string): boolean {
    return this.#come.has(key);
  }

  /** Notes that an event has happened and runs its callbacks, in the order of waiting. */
  come(key: string): void {
    this.#come.add(key);
    const waiting = this.#waiting.get(key);
    if (waiting === undefined) return;
    this.#waiting.delete(key);
    for (const then of waiting) then();
  }

  /** Removes an event, as if it had not happened. */
  forget(key: string): void {
    this.#come.delete(key);
  }

  /** Runs a callback once an event has happened, at once if it has. */
  once(key: string, then: () => void): void {
    if (this.#come.has(key)) {
      then();
      return;
    }
    const waiting = this.#waiting.get(key);
    if (waiting === undefined) this.#waiting.set(key, [then]);
    else waiting.push(then);
  }

  /** Counts one arrival of `count` at a rendezvous. @returns whether it was the last */
  arrive(key: string, count: number): boolean {
    const arrived = (this.#arrived.get(key) ?? 0) + 1;
    if (arrived < count) this.#arrived.set(key, arrived);
    else this.#arrived.delete(key);
    return arrived === count;
  }
}
