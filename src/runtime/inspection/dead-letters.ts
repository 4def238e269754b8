/** Why a message was not delivered. */
export const deadLetterReasons = [
  "NoSuchActor",
  "Stopped",
  "Expired",
  "Overflow",
  "Undeserialisable",
  "WrongProtocol",
] as const;

/** One of {@link deadLetterReasons}. */
export type DeadLetterReason = (typeof deadLetterReasons)[number];

/** A message that was not delivered, or `count` of them. */
export interface DeadLetter {
  readonly reason: DeadLetterReason;
  readonly messageKind: string;
  readonly from: string;
  readonly to: string;
  readonly count: number;
}

const ringSize = 1024;

/** The latest dead letters and the number of all, by reason. */
export class DeadLetters {
  readonly #ring: DeadLetter[] = [];
  readonly #counts = new Map<DeadLetterReason, number>();

  enter(letter: DeadLetter): void {
    this.#ring.push(letter);
    if (this.#ring.length > ringSize) this.#ring.shift();
    this.#counts.set(letter.reason, this.count(letter.reason) + letter.count);
  }

  /** How many messages were ever lost for this reason, or for any. */
  count(reason?: DeadLetterReason): number {
    if (reason !== undefined) return this.#counts.get(reason) ?? 0;
    return [...this.#counts.values()].reduce((sum, count) => sum + count, 0);
  }

  /** The latest that `matches`, oldest first. */
  latest(matches: (letter: DeadLetter) => boolean = () => true): readonly DeadLetter[] {
    return this.#ring.filter(matches);
  }
}
