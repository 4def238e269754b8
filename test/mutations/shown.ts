import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";

/** The results of earlier runs and their times, by keys, kept in a file: a run that was ended continues from there. */
export class Shown {
  readonly #path: string;
  readonly #milliseconds: Map<string, number>;

  /** @param again - forgets what the file has */
  constructor(path: string, again: boolean) {
    this.#path = path;
    const isKept = existsSync(path) && !again;
    const kept = isKept ? (JSON.parse(readFileSync(path, "utf8")) as Record<string, number>) : {};
    this.#milliseconds = new Map(Object.entries(kept));
  }

  has(key: string): boolean {
    return this.#milliseconds.has(key);
  }

  /** How long the longest of the tests took by which it was shown; undefined where it was not. */
  longestMs(key: string): number | undefined {
    return this.#milliseconds.get(key);
  }

  add(key: string, longestMs: number): void {
    this.#milliseconds.set(key, longestMs);
    mkdirSync(dirname(this.#path), { recursive: true });
    writeFileSync(this.#path, JSON.stringify(Object.fromEntries(this.#milliseconds)));
  }
}
