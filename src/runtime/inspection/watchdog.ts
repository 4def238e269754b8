import type { Clock, Timer } from "../clock.ts";
import type { ActorInspection } from "../protocol/actor-status.ts";

/** Options of a {@link Watchdog}. */
export interface WatchdogOptions {
  readonly clock: Clock;
  /** How long an actor may show no progress, in ms; may change over time. */
  stallAfterMs(): number;
  /** How long an actor may wait for a user's function before that is reported, in ms; may change over time. */
  callAfterMs(): number;
  inspect(): readonly ActorInspection[];
  /** Whether an actor should make progress now. */
  isToProgress(actor: ActorInspection): boolean;
  /** Sends heartbeat probes to actors that seem idle. Called after each look; the answers are read at the next. */
  probe(): void;
  onStall(stalled: Stalled): void;
}

/** An actor that has shown no progress for too long. */
export interface Stalled extends ActorInspection {
  /** Whether it should make progress; otherwise it waits for a user's function, which has no time limit. */
  readonly isToBlame: boolean;
  /** Whether this wait was not reported before. */
  readonly isNews: boolean;
}

/** Longest pause between two looks, in ms: actors come and go, and limits may shrink. */
const longestPauseMs = 1_000;

/**
 * Reads the status boards from a healthy thread and reports each actor that has been doing the same thing for too long, once
 * for each thing. A call of `board.set` and joining a collective count as progress. An actor that waits for a user's function
 * is reported too, even if it does other things meanwhile.
 */
export class Watchdog {
  readonly #options: WatchdogOptions;
  /** By actor, the beginning of the wait reported last: as a stall (`#blamed`) or a call of a user's function (`#named`). */
  readonly #blamed = new Map<string, number>();
  readonly #named = new Map<string, number>();
  #timer: Timer | undefined;

  constructor(options: WatchdogOptions) {
    this.#options = options;
  }

  /** Looks now and again and again from here on. */
  start(): void {
    const pauseMs = this.#look();
    this.#timer = this.#options.clock.after(pauseMs, () => this.start(), { background: true });
  }

  stop(): void {
    this.#timer?.cancel();
  }

  /** Reports stalled actors; returns the time until the next look, in ms. */
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

  /** @param pauseMs - shorter than the time between the beginnings of two reported waits */
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
 * Returns how long ago an actor that waits for a user's function last showed progress; undefined if it waits for none, or for
 * other actors inside it. A promise counts as waiting whatever the thread does meanwhile.
 */
function quietInCall(actor: ActorInspection): number | undefined {
  const { call, state, collective } = actor;
  if (call === undefined) return undefined;
  if (call.isPending) return call.ageMs;
  if (state === "waiting" || collective?.isWaiting === true) return undefined;
  return Math.min(call.ageMs, quietOf(actor));
}

/** Returns how long ago an actor last showed progress, in ms. */
function quietOf({ ageMs, unresponsiveMs, op, collective }: ActorInspection): number {
  return Math.min(
    ageMs,
    unresponsiveMs ?? Number.POSITIVE_INFINITY,
    op?.ageMs ?? Number.POSITIVE_INFINITY,
    collective?.ageMs ?? Number.POSITIVE_INFINITY,
  );
}
