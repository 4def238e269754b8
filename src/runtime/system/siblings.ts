import type { Down } from "../protocol/failure.ts";

/** The end of an actor. */
export interface Ended {
  readonly uid: number;
  readonly down: Down;
}

/**
 * Incarnations that one supervisor has started together. Those that watch are notified of the first that ends and of no
 * other. That takes n messages when all n are stopped, where watches of each other would take n².
 */
export class Siblings {
  readonly #watchers = new Set<number>();
  #first: Ended | undefined;

  /** Lets the actor of `uid` watch for the first other's end. @returns that, if it has ended; the caller then reports it */
  watch(uid: number): Ended | undefined {
    if (this.#first === undefined) this.#watchers.add(uid);
    return this.#first;
  }

  /** Records an end; returns the uids of the watchers to notify. */
  ended(end: Ended): readonly number[] {
    if (this.#first !== undefined) return [];
    this.#first = end;
    this.#watchers.delete(end.uid);
    const watchers = [...this.#watchers];
    this.#watchers.clear();
    return watchers;
  }
}
