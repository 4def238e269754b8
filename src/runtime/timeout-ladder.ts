import { TroupeError } from "../errors/index.ts";

/** A named timeout. */
export interface Rung {
  readonly name: string;
  readonly ms: number;
}

/**
 * Checks that each timeout is shorter than the next outer one. Otherwise the outer layer would report its timeout before the
 * fault inside it was reported.
 * @param rungs - timeouts from the innermost to the outermost
 * @throws {TroupeError} `TIMEOUT_LADDER` naming the first two in the wrong order
 */
export function checkTimeoutLadder(rungs: readonly Rung[]): void {
  for (const [index, inner] of rungs.entries()) {
    const outer = rungs[index + 1];
    if (outer === undefined || inner.ms < outer.ms) continue;
    throw new TroupeError("TIMEOUT_LADDER", {
      where: "timeouts",
      expected: `${inner.name} to run out before ${outer.name}`,
      got: `${inner.ms} ms and ${outer.ms} ms`,
      hint: `the inner fault must be the first to be reported; lower ${inner.name} or raise ${outer.name}`,
      fields: { inner, outer },
    });
  }
}
