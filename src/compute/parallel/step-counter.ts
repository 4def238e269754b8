interface Waiting {
  readonly value: number;
  readonly resolve: () => void;
  readonly reject: (reason: Error) => void;
}

/** A counter of steps that only rises, and promises that it reaches a value: "this block is complete for step 12". */
export class StepCounter {
  #reached = Number.NEGATIVE_INFINITY;
  #waiting: Waiting[] = [];
  #aborted: Error | undefined;
  #last = Number.POSITIVE_INFINITY;

  /** @returns whether the counter is at `value` or beyond; it begins below every number */
  has(value: number): boolean {
    return this.#reached >= value;
  }

  reach(value: number): void {
    this.#reached = value;
    const ready = this.#waiting.filter((wait) => this.has(wait.value));
    this.#waiting = this.#waiting.filter((wait) => !ready.includes(wait));
    for (const wait of ready) wait.resolve();
  }

  /** Resolves once the counter is at `value`. @throws the reason of {@link abort} */
  async until(value: number): Promise<void> {
    if (this.has(value) || value > this.#last) return;
    if (this.#aborted !== undefined) throw this.#aborted;
    await new Promise<void>((resolve, reject) => this.#waiting.push({ value, resolve, reject }));
  }

  /** Makes `value` the last value reached: present and later waits beyond it return, and {@link has} is false for them. */
  endAt(value: number): void {
    this.#last = value;
    const over = this.#waiting.filter((wait) => wait.value > value);
    this.#waiting = this.#waiting.filter((wait) => wait.value <= value);
    for (const wait of over) wait.resolve();
  }

  /** Present and later waits throw `reason`. */
  abort(reason: Error): void {
    this.#aborted ??= reason;
    for (const wait of this.#waiting.splice(0)) wait.reject(reason);
  }
}
