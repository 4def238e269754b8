import { type DType, dtypeCode, dtypeOfCode } from "./dtype.ts";
import { native } from "./native.ts";

/** A dtype that autocast can cast to. */
export type AutocastDType = Extract<DType, "bfloat16" | "float16">;

/**
 * Runs `body` with libtorch's automatic mixed precision, in this thread: matrix products cast their operands to `dtype`,
 * operators that need range compute in float32, and the rest keep the dtypes of their operands. For forward only; backward
 * follows the dtypes that forward chose. Casts are not cached: a weight that is used twice is cast twice.
 * @param dtype - undefined runs `body` without a change
 * @see https://docs.pytorch.org/docs/stable/amp.html
 */
export function autocast<T>(dtype: AutocastDType | undefined, body: () => T): T {
  if (dtype === undefined) return body();
  const before = native().setAutocast(dtypeCode(dtype));
  try {
    return body();
  } finally {
    native().setAutocast(before);
  }
}

/**
 * Runs `body` with autocast off, in this thread, for code that must compute in the dtypes of its operands.
 * @param body - receives the dtype that autocast would have cast to; undefined if autocast was off
 */
export function withoutAutocast<T>(body: (dtype: AutocastDType | undefined) => T): T {
  const before = native().setAutocast(-1);
  try {
    return body(before < 0 ? undefined : (dtypeOfCode(before) as AutocastDType));
  } finally {
    native().setAutocast(before);
  }
}
