import { type Profiler, Session } from "node:inspector";

/** The blocks of some sources that were run, and roughly how often, as V8 counts them. */
export class Coverage implements Disposable {
  readonly #session = new Session();
  readonly #sources: RegExp;
  readonly #seen = new Set<string>();

  constructor(sources: RegExp) {
    this.#sources = sources;
    this.#session.connect();
    this.#session.post("Profiler.enable");
    this.#session.post("Profiler.startPreciseCoverage", { callCount: true, detailed: true });
  }

  /** How many different things were seen so far. */
  get size(): number {
    return this.#seen.size;
  }

  /** Whether something new was run since it was last asked. */
  hasNew(): boolean {
    const before = this.#seen.size;
    for (const { url, functions } of this.#take()) {
      if (!this.#sources.test(url)) continue;
      for (const { ranges } of functions) {
        for (const { startOffset, endOffset, count } of ranges) {
          // Once, a few times, or many times are different things: a loop that runs longer is news.
          if (count > 0) this.#seen.add(`${url}:${startOffset}:${endOffset}:${Math.floor(Math.log2(count))}`);
        }
      }
    }
    return this.#seen.size > before;
  }

  [Symbol.dispose](): void {
    this.#session.disconnect();
  }

  #take(): readonly Profiler.ScriptCoverage[] {
    let result: readonly Profiler.ScriptCoverage[] = [];
    // The answer comes before the call returns: the session is this thread's own.
    this.#session.post("Profiler.takePreciseCoverage", (error, taken) => {
      if (error === null) result = taken.result;
    });
    return result;
  }
}
