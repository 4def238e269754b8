import { TroupeError } from "../errors/index.ts";

/** A waiting time and what it is for. */
export interface Rung {
  readonly name: string;
  readonly ms: number;
}

/**
 * Refuses waiting times of which an outer one runs out no later than one inside it: then the outer layer
 * would report that it waited too long, and the fault underneath would not be the first thing anyone reads.
 * @param rungs - from the innermost to the outermost
 * @throws {TroupeError} `TIMEOUT_LADDER` naming the first two in the wrong order
 */
export function checkTimeoutLadder(rungs: readonly Rung[]): void {
  for (const [index, inner] of rungs.entries()) {
    const outer = rungs[index + 1];
    if (outer === undefined || inner.ms < outer.ms) continue;
    throw new TroupeError(
      "TIMEOUT_LADDER",
      {
        where: "timeouts",
        expected: `${inner.name} to run out before ${outer.name}`,
        got: `${inner.ms} ms and ${outer.ms} ms`,
        hint: `the inner fault must be the first to be reported; lower ${inner.name} or raise ${outer.name}`,
      },
      { fields: { inner, outer } },
    );
  }
}
