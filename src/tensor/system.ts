import { TroupeError } from "../errors.ts";
import { type NativeInfo, native } from "./native.ts";

/**
 * Threads that an operator may use when called from this JavaScript thread: OpenMP, MKL and oneDNN alike. Other threads
 * keep theirs, so that two ranks on two cores take one each.
 */
export function setNumThreads(count: number): void {
  if (!Number.isSafeInteger(count) || count < 1) {
    throw new TroupeError("TENSOR_ARGUMENT", `[setNumThreads] a count of at least 1 was expected: ${count}`, {
      fields: { count },
    });
  }
  native().setNumThreads(count);
}

/** Threads that an operator may use now. */
export function numThreads(): number {
  return native().numThreads();
}

/** What the addon was built with and runs on. */
export function nativeInfo(): NativeInfo {
  return native().nativeInfo();
}

/** Multiplies two matrices, and sums through Gloo where it is built in. @throws {TroupeError} when a result is wrong */
export function selfTest(): { readonly matmul: boolean; readonly gloo: boolean } {
  return native().selfTest();
}
