import { TroupeError } from "../../errors/index.ts";
import type { RankContext } from "../index.ts";

// Each rank is a thread with its own modules: this variable is per rank.
let current: RankContext | undefined;

/** Sets the rank that {@link currentRank} returns in this thread. */
export function enterRank(rank: RankContext): void {
  current = rank;
}

/** Returns the rank that runs in this thread. @throws {TroupeError} `LOOP_ORDER` outside of a loop and of a template's hooks */
export function currentRank(): RankContext {
  if (current !== undefined) return current;
  throw outside("a call in a training loop or a hook of a rank");
}

/** The error of a call outside a rank. */
export function outside(expected: string): TroupeError {
  return new TroupeError("LOOP_ORDER", { where: "rapidformer", expected, got: "none" });
}
