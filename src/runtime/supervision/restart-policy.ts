/** The children that are restarted after one ended: it alone, all, or it and those started after it. */
export type Strategy = "one_for_one" | "one_for_all" | "rest_for_one";

/** When a child that ended is restarted: always, after a failure only, or never. */
export type Restart = "permanent" | "transient" | "temporary";

/** Delay before a restart: `firstMs`, doubled with each further restart in the window, at most `maxMs`. */
export interface Backoff {
  readonly firstMs: number;
  readonly maxMs: number;
}

/** Returns the indices of the children to restart after child `endedIndex` ended, in starting order. */
export function restartSet(strategy: Strategy, endedIndex: number, numChildren: number): readonly number[] {
  if (strategy === "one_for_one") return [endedIndex];
  const firstIndex = strategy === "one_for_all" ? 0 : endedIndex;
  return Array.from({ length: numChildren - firstIndex }, (_, offset) => firstIndex + offset);
}

/** Whether to restart a child that ended. */
export function isToRestart(restart: Restart, failed: boolean): boolean {
  return restart === "permanent" || (restart === "transient" && failed);
}

/** Counts restarts as OTP does: at most `restarts` within any `withinMs`. */
export class RestartWindow<Cause> {
  readonly #restarts: number;
  readonly #withinMs: number;
  #recent: { readonly atMs: number; readonly cause: Cause }[] = [];

  constructor(restarts: number, withinMs: number) {
    this.#restarts = restarts;
    this.#withinMs = withinMs;
  }

  /** Counts a restart at `nowMs`; returns false if it is one too many. */
  admit(nowMs: number, cause: Cause): boolean {
    this.#recent = this.#recent.filter(({ atMs }) => nowMs - atMs < this.#withinMs);
    this.#recent.push({ atMs: nowMs, cause });
    return this.#recent.length <= this.#restarts;
  }

  /** The causes of the restarts in the window, oldest first. */
  get causes(): readonly Cause[] {
    return this.#recent.map(({ cause }) => cause);
  }

  /** Forgets past restarts, because the children have recovered since. */
  reset(): void {
    this.#recent = [];
  }
}

/** Returns the delay before restart number `numRecent` of the window, from 1. */
export function backoffMs(backoff: Backoff | undefined, numRecent: number): number {
  return backoff === undefined ? 0 : Math.min(backoff.maxMs, backoff.firstMs * 2 ** (numRecent - 1));
}
