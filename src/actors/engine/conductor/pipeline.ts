/** Work granted a few pieces ahead, reported in the order of the grants until the first failure, which waiters get at once. */
export class Pipeline {
  readonly #depth: number;
  readonly #inFlight: Promise<void>[] = [];
  readonly #failed = Promise.withResolvers<never>();
  #last: Promise<void> = Promise.resolve();

  /** @param depth - pieces granted and not yet reported */
  constructor(depth: number) {
    this.#depth = depth;
    // Rejection is delivered to waiters; without any it is no failure of its own.
    this.#failed.promise.catch(() => {});
  }

  /** Adds work that has begun; resolves when there is room for more. `report` is called in order. @throws the first failure */
  async add<T>(work: Promise<T>, report: (outcome: T) => void): Promise<void> {
    const before = this.#last;
    const reported = Promise.all([work, before]).then(([outcome]) => report(outcome));
    reported.catch((error: unknown) => this.#failed.reject(error));
    this.#last = reported;
    this.#inFlight.push(reported);
    if (this.#inFlight.length >= this.#depth) await this.unlessFailed(this.#inFlight.shift());
  }

  /** Resolves with `other`. @throws the first failure of any piece, if that comes sooner */
  async unlessFailed<T>(other: T | Promise<T>): Promise<T> {
    return Promise.race([other, this.#failed.promise]);
  }

  /** Fails the pipeline with the error of something that belongs to its work. */
  fail(error: unknown): void {
    this.#failed.reject(error);
  }

  /** Resolves when all work added is reported. @throws the first failure of any piece */
  async drain(): Promise<void> {
    this.#inFlight.length = 0;
    await this.unlessFailed(this.#last);
  }
}
