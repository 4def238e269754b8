/** Which children a failure takes with it: it alone, all, or it and those started after it. */
export type Strategy = "one_for_one" | "one_for_all" | "rest_for_one";

/** When a child that ended is started again: always, after a failure only, or never. */
export type Restart = "permanent" | "transient" | "temporary";

/** How long to wait before a restart: `firstMs`, doubled with each further one in the window, at most `maxMs`. */
export interface Backoff {
  readonly firstMs: number;
  readonly maxMs: number;
}

/** Positions of the children to be started again after child `endedIndex` of `numChildren`, in starting order. */
export function restartSet(strategy: Strategy, endedIndex: number, numChildren: number): readonly number[] {
  if (strategy === "one_for_one") return [endedIndex];
  const firstIndex = strategy === "one_for_all" ? 0 : endedIndex;
  return Array.from({ length: numChildren - firstIndex }, (_, offset) => firstIndex + offset);
}

/** Whether a child that ended is to be started again. */
export function isToRestart(restart: Restart, failed: boolean): boolean {
  return restart === "permanent" || (restart === "transient" && failed);
}

/** Counts restarts as OTP does: at most `restarts` of them within any `withinMs`. */
export class RestartWindow<Cause> {
  readonly #restarts: number;
  readonly #withinMs: number;
  #recent: { readonly atMs: number; readonly cause: Cause }[] = [];

  constructor(restarts: number, withinMs: number) {
    this.#restarts = restarts;
    this.#withinMs = withinMs;
  }

  /** Enters a restart at `nowMs`; returns false when it is one too many. */
  admit(nowMs: number, cause: Cause): boolean {
    this.#recent = this.#recent.filter(({ atMs }) => nowMs - atMs < this.#withinMs);
    this.#recent.push({ atMs: nowMs, cause });
    return this.#recent.length <= this.#restarts;
  }

  /** Why the restarts entered and not yet too old were needed, oldest first. */
  get causes(): readonly Cause[] {
    return this.#recent.map(({ cause }) => cause);
  }

  /** Forgets all: what failed before has proved to be over. */
  reset(): void {
    this.#recent = [];
  }
}

/** How long to wait before the restart that is number `numRecent` of its window. */
export function backoffMs(backoff: Backoff | undefined, numRecent: number): number {
  return backoff === undefined ? 0 : Math.min(backoff.maxMs, backoff.firstMs * 2 ** (numRecent - 1));
}
