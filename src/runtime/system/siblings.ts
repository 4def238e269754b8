import type { Down } from "../protocol/failure.ts";

/** The end of an actor. */
export interface Ended {
  readonly uid: number;
  readonly down: Down;
}

/**
 * Incarnations that one supervisor has started together. Whoever of them asks is told of the first that ends, and of no other: of n
 * actors n are told, where n watches of n actors would tell n² times when all are stopped.
 */
export class Siblings {
  readonly #watchers = new Set<number>();
  #first: Ended | undefined;

  /**
   * Has one of them told of the first other that ends.
   * @param uid - its own
   * @returns that end, where there has been one: then it is the caller's to tell
   */
  watch(uid: number): Ended | undefined {
    if (this.#first === undefined) this.#watchers.add(uid);
    return this.#first;
  }

  /** One of them has ended. @returns the uids of those to be told */
  ended(end: Ended): readonly number[] {
    if (this.#first !== undefined) return [];
    this.#first = end;
    this.#watchers.delete(end.uid);
    const watchers = [...this.#watchers];
    this.#watchers.clear();
    return watchers;
  }
}
