import type { Clock, Timer } from "./clock.ts";
import type { ActorInspection } from "./inspection.ts";

/** What a watchdog watches, and whom it tells. */
export interface WatchdogOptions {
  readonly clock: Clock;
  /** How long an actor may show no progress while it handles a message or waits. */
  readonly stallAfterMs: number;
  inspect(): readonly ActorInspection[];
  onStall(stalled: ActorInspection): void;
}

const looksPerPeriod = 4;

/**
 * Reads the status board from a healthy thread and names each actor that has been at the same thing for too
 * long, once for each thing. An actor that says what it does by `board.set` shows progress by it.
 */
export class Watchdog {
  readonly #options: WatchdogOptions;
  readonly #reported = new Map<string, number>();
  #timer: Timer | undefined;

  constructor(options: WatchdogOptions) {
    this.#options = options;
  }

  /** Looks from now on, four times in each `stallAfterMs`. */
  start(): void {
    const { clock, stallAfterMs } = this.#options;
    this.#timer = clock.after(
      stallAfterMs / looksPerPeriod,
      () => {
        this.#look();
        this.start();
      },
      { background: true },
    );
  }

  stop(): void {
    this.#timer?.cancel();
  }

  #look(): void {
    const nowMs = this.#options.clock.now();
    for (const actor of this.#options.inspect()) {
      const quietMs = Math.min(actor.ageMs, actor.op?.ageMs ?? Number.POSITIVE_INFINITY);
      if (actor.state === "idle" || quietMs < this.#options.stallAfterMs) continue;
      const name = `${actor.actor}#${actor.incarnation}`;
      const sinceMs = Math.round(nowMs - quietMs);
      if (this.#reported.get(name) === sinceMs) continue;
      this.#reported.set(name, sinceMs);
      this.#options.onStall(actor);
    }
  }
}
