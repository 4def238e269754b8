import { native } from "../native.ts";
import { liveHandle, type Tensor } from "../tensor.ts";

/**
 * Copies some elements to the same places of another tensor, in a thread that gives way to those that compute: this one goes
 * on meanwhile. One copy is made after the other, as they were asked for. Until the promise is fulfilled the source must not change, and of the target nobody may read those elements.
 * Both may be disposed at once: their memory lives as long as it is needed.
 * @param begin - of the elements
 * @throws {TroupeError} `TENSOR_ARGUMENT` unless both are contiguous, of one dtype and size, in host memory
 */
export function copyOffThread(from: Tensor, into: Tensor, begin: number, numel: number): Promise<void> {
  return native().copyOffThread(
    liveHandle(from, "copyOffThread"),
    liveHandle(into, "copyOffThread"),
    begin,
    numel,
  );
}
