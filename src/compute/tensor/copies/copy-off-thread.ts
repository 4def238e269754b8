import { native } from "../native.ts";
import { liveHandle, type Tensor } from "../tensor.ts";

/**
 * Copies some elements to the same places of another tensor, in a low-priority thread. Copies run one after the other, in the
 * order of the calls. Until the promise resolves, the source must not change and these elements of the target must not be
 * read. Both tensors may be disposed at once: their memory lives as long as it is needed.
 * @param begin - index of the first element
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
