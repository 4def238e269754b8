import { TroupeError } from "../../../errors/index.ts";

/** The error for loop calls in an order in which nothing can be trained. */
export function loopOrder(expected: string, got: string, hint: string): TroupeError {
  return new TroupeError("LOOP_ORDER", { where: "loop", expected, got, hint });
}
