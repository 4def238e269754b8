import { TroupeError } from "../../errors/index.ts";
import type { Clock, Timer } from "../clock.ts";

/** Parts of the cell that {@link startTimer} uses. */
export interface TimerOptions {
  readonly clock: Clock;
  /** Whether the actor has ended: its timers have then too. */
  hasEnded(): boolean;
  /** Sends the actor its message. */
  send(): void;
}

/**
 * Sends an actor a message, once or again and again. A turn that the actor's thread is too late for is left out.
 * @param where - for the error message
 * @throws {TroupeError} `DEADLINE_INVALID` for a time that is not a positive number
 */
export function startTimer(where: string, ms: number, repeats: boolean, options: TimerOptions): Timer {
  if (!(ms > 0 && Number.isFinite(ms)))
    throw new TroupeError("DEADLINE_INVALID", {
      where,
      expected: "a time in ms, above 0",
      got: String(ms),
      hint: "correct the time",
    });
  const { clock, hasEnded, send } = options;
  let dueMs = clock.now() + ms;
  let timer: Timer;
  const fire = (): void => {
    if (hasEnded()) return;
    send();
    const lateMs = Math.max(0, clock.now() - dueMs);
    dueMs += ms * (Math.floor(lateMs / ms) + 1);
    if (repeats) arm();
  };
  const arm = (): void => {
    timer = clock.after(Math.max(0, dueMs - clock.now()), fire, { background: true });
  };
  arm();
  return { cancel: () => timer.cancel() };
}
