import { appendFileSync, existsSync } from "node:fs";
import { maxFileBytes, readBoundedTextSync } from "../../errors/untrusted/index.ts";

/** What was measured, by what with: plain data. */
interface Entry {
  /** All that it depends on. */
  readonly of: Readonly<Record<string, string | number>>;
  readonly seconds: number;
  readonly value: unknown;
}

/**
 * Everything measured so far, kept in a file, a line each: a run that ended early goes on where it was, and tables that were
 * measured one by one are joined. What was measured with other settings or on another machine stays in the file and counts
 * for nothing.
 */
export class KeptResults {
  readonly #file: string | undefined;
  readonly #entries = new Map<string, Entry>();
  #seconds = 0;

  /** @param file - need not exist; none for what is kept in memory alone */
  constructor(file?: string) {
    this.#file = file;
    if (file === undefined || !existsSync(file)) return;
    for (const line of readBoundedTextSync(file, maxFileBytes.text).split("\n")) {
      const entry = entryIn(line);
      if (entry !== undefined) this.#entries.set(JSON.stringify(entry.of), entry);
    }
  }

  /** What it took to measure all that was asked for. */
  get seconds(): number {
    return this.#seconds;
  }

  /**
   * @param of - all that the result depends on
   * @param measure - none where it is to be had only if it was measured before
   * @returns what was kept; else what is measured now, and kept from then on
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

/** @returns undefined for a line that a run was writing when it was killed */
function entryIn(line: string): Entry | undefined {
  try {
    return JSON.parse(line) as Entry;
  } catch {
    return undefined;
  }
}
