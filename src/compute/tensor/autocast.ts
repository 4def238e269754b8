import { type DType, dtypeCode, dtypeOfCode } from "./dtype.ts";
import { native } from "./native.ts";

/** What autocast may cast to. */
export type AutocastDType = Extract<DType, "bfloat16" | "float16">;

/**
 * Runs `body` with libtorch's automatic mixed precision, in this thread: matrix products cast what they are given to
 * `dtype`, operators that need range compute in float32, the rest in what comes. For forward only; backward follows the
 * types that forward chose. Casts are not kept: a weight that is used twice is cast twice.
 * @param dtype - undefined runs `body` as it is
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
 * Runs `body` with autocast off, in this thread: for what must compute in the types it is given.
 * @param body - is told what autocast would have cast to, undefined where it was off anyway
 */
export function withoutAutocast<T>(body: (dtype: AutocastDType | undefined) => T): T {
  const before = native().setAutocast(-1);
  try {
    return body(before < 0 ? undefined : (dtypeOfCode(before) as AutocastDType));
  } finally {
    native().setAutocast(before);
  }
}
