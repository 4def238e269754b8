import { TroupeError } from "../../errors/index.ts";
import type { RankContext } from "../index.ts";

// Each rank is a thread with modules of its own: what is kept here is that rank's alone.
let current: RankContext | undefined;

/** Has what follows in this thread work for a rank. */
export function enterRank(rank: RankContext): void {
  current = rank;
}

/**
 * The rank that runs in this thread.
 * @throws {TroupeError} `LOOP_ORDER` outside of a training loop and of a template's hooks
 */
export function currentRank(): RankContext {
  if (current !== undefined) return current;
  throw outside("a call in a training loop or a hook of a rank");
}

/** What is asked for where no rank runs. */
export function outside(expected: string): TroupeError {
  return new TroupeError("LOOP_ORDER", { where: "rapidformer", expected, got: "none" });
}
