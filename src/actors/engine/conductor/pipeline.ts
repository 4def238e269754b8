/** Work granted a few pieces ahead, reported in the order of the grants until the first failure, which waiters get at once. */
export class Pipeline {
  readonly #depth: number;
  readonly #inFlight: Promise<void>[] = [];
  /** Rejections of waits. `Promise.race` with the failure would keep each wait as long as the pipeline lives: 300 bytes a step. */
  readonly #waiting = new Set<(error: unknown) => void>();
  #failed: { readonly error: unknown } | undefined;
  #last: Promise<void> = Promise.resolve();

  /** @param depth - pieces granted and not yet reported */
  constructor(depth: number) {
    this.#depth = depth;
  }

  /** Adds work that has begun; resolves when there is room for more. `report` is called in order. @throws the first failure */
  async add<T>(work: Promise<T>, report: (outcome: T) => void): Promise<void> {
    const before = this.#last;
    const reported = Promise.all([work, before]).then(([outcome]) => report(outcome));
    reported.catch((error: unknown) => this.fail(error));
    this.#last = reported;
    this.#inFlight.push(reported);
    if (this.#inFlight.length >= this.#depth) await this.unlessFailed(this.#inFlight.shift());
  }

  /** Resolves with `other`. @throws the first failure of any piece, if that comes sooner */
  async unlessFailed<T>(other: T | Promise<T>): Promise<T> {
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    Promise.resolve(other).then(resolve, reject);
    if (this.#failed !== undefined) reject(this.#failed.error);
    this.#waiting.add(reject);
    try {
      return await promise;
    } finally {
      this.#waiting.delete(reject);
    }
  }

  /** Fails the pipeline with the error of something that belongs to its work. */
  fail(error: unknown): void {
    this.#failed ??= { error };
    for (const reject of this.#waiting) reject(this.#failed.error);
  }

  /** Resolves when all work added is reported. @throws the first failure of any piece */
  async drain(): Promise<void> {
    this.#inFlight.length = 0;
    await this.unlessFailed(this.#last);
  }
}
