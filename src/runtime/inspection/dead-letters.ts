import type { DeadLetter, DeadLetterReason } from "../protocol/dead-letter.ts";

const ringSize = 1024;

/** The latest dead letters, and counts of all by reason. */
export class DeadLetters {
  readonly #ring: DeadLetter[] = [];
  readonly #counts = new Map<DeadLetterReason, number>();

  enter(letter: DeadLetter): void {
    this.#ring.push(letter);
    if (this.#ring.length > ringSize) this.#ring.shift();
    this.#counts.set(letter.reason, this.count(letter.reason) + letter.count);
  }

  /** Returns how many messages were lost for this reason, or for any. */
  count(reason?: DeadLetterReason): number {
    if (reason !== undefined) return this.#counts.get(reason) ?? 0;
    return [...this.#counts.values()].reduce((sum, count) => sum + count, 0);
  }

  /** Returns the latest dead letters that match, oldest first. */
  latest(matches: (letter: DeadLetter) => boolean = () => true): readonly DeadLetter[] {
    return this.#ring.filter(matches);
  }
}
