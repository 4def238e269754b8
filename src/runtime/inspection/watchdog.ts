import type { Clock, Timer } from "../clock.ts";
import type { ActorInspection } from "../protocol/actor-status.ts";

/** What a watchdog watches, and whom it tells. */
export interface WatchdogOptions {
  readonly clock: Clock;
  /** How long an actor may show no progress, in ms; may change as one learns how long things take. */
  stallAfterMs(): number;
  /** The actors that ought to make progress now. */
  inspect(): readonly ActorInspection[];
  /** Asks those who seem idle for a sign; called after each look, the answer is read at the next. */
  probe(): void;
  onStall(stalled: ActorInspection): void;
}

/** Actors come and go, and what is allowed may shrink: it looks at least so often, in ms. */
const longestPauseMs = 1_000;

/**
 * Reads the status board from a healthy thread and names each actor that has been at the same thing for too long, once for
 * each thing, at the moment its time is up. An actor that says what it does by `board.set`, or comes to a collective, shows
 * progress by it.
 */
export class Watchdog {
  readonly #options: WatchdogOptions;
  readonly #reported = new Map<string, number>();
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
    const nowMs = this.#options.clock.now();
    const stallAfterMs = this.#options.stallAfterMs();
    let pauseMs = Math.min(stallAfterMs, longestPauseMs);
    for (const actor of this.#options.inspect()) {
      const quietMs = quietOf(actor);
      if (quietMs < stallAfterMs) pauseMs = Math.min(pauseMs, Math.ceil(stallAfterMs - quietMs));
      else this.#report(actor, Math.round(nowMs - quietMs));
    }
    this.#options.probe();
    return pauseMs;
  }

  #report(actor: ActorInspection, sinceMs: number): void {
    const name = `${actor.actor}#${actor.incarnation}`;
    if (this.#reported.get(name) === sinceMs) return;
    this.#reported.set(name, sinceMs);
    this.#options.onStall(actor);
  }
}

/** How long ago an actor last showed progress. */
export function quietOf({ ageMs, unresponsiveMs, op, collective }: ActorInspection): number {
  return Math.min(
    ageMs,
    unresponsiveMs ?? Number.POSITIVE_INFINITY,
    op?.ageMs ?? Number.POSITIVE_INFINITY,
    collective?.ageMs ?? Number.POSITIVE_INFINITY,
  );
}
