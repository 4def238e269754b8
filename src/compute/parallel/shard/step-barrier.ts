interface Waiting {
  readonly key: number;
  readonly value: number;
  readonly resolve: () => void;
  readonly reject: (reason: Error) => void;
}

/** Counters that only rise, and promises for their reaching a value: "block 3 is whole for step 12". */
export class StepBarrier {
  readonly #reached = new Map<number, number>();
  #waiting: Waiting[] = [];
  #aborted: Error | undefined;
  #last = Number.POSITIVE_INFINITY;

  /** @returns whether the counter of `key` is at `value` or beyond; counters begin below every number */
  has(key: number, value: number): boolean {
    return (this.#reached.get(key) ?? Number.NEGATIVE_INFINITY) >= value;
  }

  /** Raises the counter of `key`. */
  reach(key: number, value: number): void {
    this.#reached.set(key, value);
    const ready = this.#waiting.filter((wait) => this.has(wait.key, wait.value));
    this.#waiting = this.#waiting.filter((wait) => !ready.includes(wait));
    for (const wait of ready) wait.resolve();
  }

  /** Resolves once the counter of `key` is at `value`. @throws the reason of {@link abort} */
  async until(key: number, value: number): Promise<void> {
    if (this.has(key, value) || value > this.#last) return;
    if (this.#aborted !== undefined) throw this.#aborted;
    await new Promise<void>((resolve, reject) => this.#waiting.push({ key, value, resolve, reject }));
  }

  /** Sets `value` as the last that counters reach: present and later waits for more return, and {@link has} is false for them. */
  endAt(value: number): void {
    this.#last = value;
    const over = this.#waiting.filter((wait) => wait.value > value);
    this.#waiting = this.#waiting.filter((wait) => wait.value <= value);
    for (const wait of over) wait.resolve();
  }

  /** Whoever waits, now or later, gets `reason`. */
  abort(reason: Error): void {
    this.#aborted ??= reason;
    for (const wait of this.#waiting.splice(0)) wait.reject(reason);
  }
}
