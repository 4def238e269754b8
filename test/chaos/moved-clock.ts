import { writeFileSync } from "node:fs";
import type { Workspace } from "../fixtures/run-tiny.ts";
import { canPreload, preloaded } from "./preloaded.ts";

/** Strikes of the time of day: by how many seconds it moves. */
export const clockStrikes = { "clock set back": -3 * 86_400, "clock set ahead": 400 * 86_400 } as const;
export type ClockStrike = keyof typeof clockStrikes;

/** Whether a strike hits the clock, and not the program. */
export function isOfClock(strike: string): strike is ClockStrike {
  return strike in clockStrikes;
}

/** The time of day of programs, which moves while they run. */
export class MovedClock {
  /** Variables of the programs' environment; none where no library can be compiled. */
  readonly env: NodeJS.ProcessEnv;
  readonly #path: string;

  constructor(workspace: Workspace, name: string) {
    this.#path = workspace.path(`${name}-clock`);
    writeFileSync(this.#path, Buffer.alloc(8));
    this.env = canPreload
      ? { LD_PRELOAD: preloaded(workspace, "moved-clock"), TROUPE_CHAOS_CLOCK: this.#path }
      : {};
  }

  /** Moves the clock of programs that run, and of those that start later, against the machine's. */
  strike(strike: ClockStrike): void {
    // In its place: programs have mapped the file.
    writeFileSync(this.#path, new BigInt64Array([BigInt(clockStrikes[strike])]), { flag: "r+" });
  }
}
