import { TroupeError } from "../../errors/index.ts";

/**
 * A reduction of the ranks' elements. It runs in rank order, with the same bits on every backend. bfloat16 and float16 are
 * computed in float32 and rounded once. `avg` takes floats only; `max` and `min` propagate NaN.
 */
export type ReduceOp = "sum" | "avg" | "max" | "min" | "prod";

/** `Reduction` of `native/comm/operation.h`. */
const codes = { sum: 0, avg: 1, max: 2, min: 3, prod: 4 } as const satisfies Record<ReduceOp, number>;

/** Returns the native number of a reduction. @throws {TroupeError} `COLLECTIVE_ARGUMENT` on an unknown name */
export function reductionCode(op: ReduceOp): number {
  const code: number | undefined = codes[op];
  if (code === undefined)
    throw new TroupeError("COLLECTIVE_ARGUMENT", {
      where: "reduce",
      expected: `one of ${Object.keys(codes).join(", ")}`,
      got: String(op),
      fields: { op },
    });
  return code;
}
