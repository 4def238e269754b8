/** The time during which at least one of several overlapping activities went on: less than the sum of their times. */
export class BusyTime {
  #untilMs = Number.NEGATIVE_INFINITY;
  #totalMs = 0;

  /** Adds an activity; beginnings must not go back. Times on one clock, in milliseconds. */
  add(beginMs: number, endMs: number): void {
    this.#totalMs += Math.max(0, endMs - Math.max(beginMs, this.#untilMs));
    this.#untilMs = Math.max(this.#untilMs, endMs);
  }

  get totalMs(): number {
    return this.#totalMs;
  }
}
