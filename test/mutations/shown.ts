import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";

/** What was shown before, by keys, kept in a file: a run that was ended goes on where it was. */
export class Shown {
  readonly #path: string;
  readonly #keys: Set<string>;

  /** @param again - forgets what the file has */
  constructor(path: string, again: boolean) {
    this.#path = path;
    const isKept = existsSync(path) && !again;
    this.#keys = new Set(isKept ? (JSON.parse(readFileSync(path, "utf8")) as string[]) : []);
  }

  has(key: string): boolean {
    return this.#keys.has(key);
  }

  add(key: string): void {
    this.#keys.add(key);
    mkdirSync(dirname(this.#path), { recursive: true });
    writeFileSync(this.#path, JSON.stringify([...this.#keys]));
  }
}
