import type { Clock, Timer } from "../clock.ts";
import type { ActorInspection } from "../protocol/actor-status.ts";

/** What a watchdog watches, and whom it tells. */
export interface WatchdogOptions {
  readonly clock: Clock;
  /** How long an actor may show no progress, in ms; may change as one learns how long things take. */
  stallAfterMs(): number;
  /** How long an actor may wait for a user's code before that is reported, in ms; may change too. */
  callAfterMs(): number;
  inspect(): readonly ActorInspection[];
  /** Whether an actor ought to make progress now. */
  isToProgress(actor: ActorInspection): boolean;
  /** Asks those who seem idle for a sign; called after each look, the answer is read at the next. */
  probe(): void;
  onStall(stalled: Stalled): void;
}

/** An actor whose time is up. */
export interface Stalled extends ActorInspection {
  /** Whether it ought to make progress; else it waits for a user's code, which has no time limit. */
  readonly isToBlame: boolean;
  /** Whether this wait was not reported before. */
  readonly isNews: boolean;
}

/** Actors come and go, and what is allowed may shrink: it looks at least so often, in ms. */
const longestPauseMs = 1_000;

/**
 * Reads the status board from a healthy thread and names each actor that has been at the same thing for too long, once for
 * each thing, at the moment its time is up. An actor that says what it does by `board.set`, or comes to a collective, shows
 * progress by it. One that waits for a user's code is named too, whatever else it does.
 */
export class Watchdog {
  readonly #options: WatchdogOptions;
  /** By actor: when the wait began that was last reported, as a stall (`#blamed`) or as a call into a user's code (`#named`). */
  readonly #blamed = new Map<string, number>();
  readonly #named = new Map<string, number>();
  #timer: Timer | undefined;

  constructor(options: WatchdogOptions) {
    this.#options = options;
  }

  /** Looks from now on. */
  start(): void {
    const pauseMs = this.#look();
    this.#timer = this.#options.clock.after(pauseMs, () => this.start(), { background: true });
  }

  stop(): void {
    this.#timer?.cancel();
  }

  /** @returns how long it is until the next actor's time can be up */
  #look(): number {
    const options = this.#options;
    const nowMs = options.clock.now();
    const limits = { stallMs: options.stallAfterMs(), callMs: options.callAfterMs() };
    let pauseMs = Math.min(limits.stallMs, limits.callMs, longestPauseMs);
    const leave = (leftMs: number) => {
      if (leftMs > 0) pauseMs = Math.min(pauseMs, Math.ceil(leftMs));
      return leftMs <= 0;
    };
    for (const actor of options.inspect()) {
      const quietMs = quietOf(actor);
      const callMs = quietInCall(actor);
      const isBlamed = options.isToProgress(actor) && leave(limits.stallMs - quietMs);
      const isCalled = callMs !== undefined && leave(limits.callMs - callMs);
      if (isBlamed || isCalled)
        this.#report(
          actor,
          isBlamed,
          nowMs - (isCalled ? callMs : quietMs),
          Math.min(limits.stallMs, limits.callMs),
        );
    }
    options.probe();
    return pauseMs;
  }

  /** @param pauseMs - less than what lies between the beginnings of two waits that are reported */
  #report(actor: ActorInspection, isToBlame: boolean, sinceMs: number, pauseMs: number): void {
    const name = `${actor.actor}#${actor.incarnation}`;
    // The board is read a moment after the clock, so the beginning of one wait differs a little from look to look.
    const isLater = (thanMs: number | undefined) => thanMs === undefined || sinceMs > thanMs + pauseMs / 2;
    const isNews = isLater(this.#named.get(name));
    if (!isNews && !(isToBlame && isLater(this.#blamed.get(name)))) return;
    if (isNews) this.#named.set(name, sinceMs);
    if (isToBlame) this.#blamed.set(name, sinceMs);
    this.#options.onStall({ ...actor, isToBlame, isNews });
  }
}

/**
 * How long ago an actor that waits for a user's code last showed progress; undefined where it waits for none, or for others within
 * that. A promise is waited for whatever its thread does meanwhile.
 */
function quietInCall(actor: ActorInspection): number | undefined {
  const { call, state, collective } = actor;
  if (call === undefined) return undefined;
  if (call.isPending) return call.ageMs;
  if (state === "waiting" || collective?.isWaiting === true) return undefined;
  return Math.min(call.ageMs, quietOf(actor));
}

/** How long ago an actor last showed progress. */
function quietOf({ ageMs, unresponsiveMs, op, collective }: ActorInspection): number {
  return Math.min(
    ageMs,
    unresponsiveMs ?? Number.POSITIVE_INFINITY,
    op?.ageMs ?? Number.POSITIVE_INFINITY,
    collective?.ageMs ?? Number.POSITIVE_INFINITY,
  );
}
