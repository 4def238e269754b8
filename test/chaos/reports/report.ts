import type { Workspace } from "../../fixtures/run-tiny.ts";
import type { Placement } from "../faults.ts";

/** The options of `npm run chaos`. */
export interface ChaosOptions {
  readonly workspace: Workspace;
  readonly seed: number;
  /** How long training and fuzzing take, each. */
  readonly minutes: number;
  /** Mean time between two faults of a training run. */
  readonly mtbfSeconds: number;
  readonly placements: readonly Placement[];
  /** Programs that are started and killed, and runs that are started and stopped. */
  readonly numCycles: number;
  /** Programs that are ended at random moments. */
  readonly numMoments: number;
  /** Sessions of a live model. */
  readonly numSessions: number;
  /** Faults of runs over two hosts. */
  readonly numFaults: number;
  /** Saves that are killed at random moments. */
  readonly numKills: number;
  /** Hostile files that are read, of all kinds together. */
  readonly numFiles: number;
  /** Part of the name of what is fuzzed, or of a phase; everything where empty. */
  readonly target: string;
  readonly isVerbose: boolean;
}

/** Disturbs one part, prints what became of it, and says whether all that was promised held. */
export type Report = (options: ChaosOptions) => Promise<boolean>;

/** Prints a line. */
export function say(line: string): void {
  process.stdout.write(`${line}\n`);
}
