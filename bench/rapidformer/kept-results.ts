import { appendFileSync, existsSync } from "node:fs";
import { maxFileBytes, readBoundedTextSync } from "../../src/errors/untrusted/index.ts";

/** A result and everything that it depends on: plain data. */
interface Entry {
  /** Everything that it depends on. */
  readonly of: Readonly<Record<string, string | number>>;
  readonly seconds: number;
  readonly value: unknown;
}

/**
 * Stores results in a file, one per line: a run that ended early continues where it was, and tables measured one by one
 * are joined. Results with other settings or from another machine stay in the file and are ignored.
 */
export class KeptResults {
  readonly #file: string | undefined;
  readonly #entries = new Map<string, Entry>();
  #seconds = 0;

  /** @param file - need not exist; left out: results are kept in memory only */
  constructor(file?: string) {
    this.#file = file;
    if (file === undefined || !existsSync(file)) return;
    for (const line of readBoundedTextSync(file, maxFileBytes.text).split("\n")) {
      const entry = entryIn(line);
      if (entry !== undefined) this.#entries.set(JSON.stringify(entry.of), entry);
    }
  }

  /** Time that the requested results took to measure. */
  get seconds(): number {
    return this.#seconds;
  }

  /**
   * Returns a stored result, or measures and stores it.
   * @param of - everything that the result depends on
   * @param measure - left out where only a stored result is wanted
   */
  async take<T>(of: Entry["of"], measure: (() => Promise<T>) | undefined): Promise<T | undefined> {
    const kept = this.#entries.get(JSON.stringify(of));
    if (kept === undefined && measure === undefined) return undefined;
    const entry = kept ?? (await timed(of, measure as () => Promise<T>));
    if (kept === undefined) {
      this.#entries.set(JSON.stringify(of), entry);
      if (this.#file !== undefined) appendFileSync(this.#file, `${JSON.stringify(entry)}\n`);
    }
    this.#seconds += entry.seconds;
    return entry.value as T;
  }
}

async function timed(of: Entry["of"], measure: () => Promise<unknown>): Promise<Entry> {
  const beganMs = performance.now();
  const value = await measure();
  return { of, seconds: (performance.now() - beganMs) / 1000, value };
}

/** Parses a line; undefined for one that was being written when a run was killed. */
function entryIn(line: string): Entry | undefined {
  try {
    return JSON.parse(line) as Entry;
  } catch {
    return undefined;
  }
}
