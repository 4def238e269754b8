import { dtypeCode } from "../dtype.ts";
import { native } from "../native.ts";
import { hold } from "../scope.ts";
import { adopt, liveHandle, type Tensor } from "../tensor.ts";

/**
 * A new 1-D tensor in the host's memory that a device copies from and to by itself, for {@link copyBeside}: uninitialised, of the
 * dtype and the number of elements of `like`.
 * @param like - of the device
 */
export function emptyPinned(like: Tensor): Tensor {
  return adopt(native().emptyPinned(dtypeCode(like.dtype), like.numel, liveHandle(like, "emptyPinned")));
}

/** A copy between the host and a device that was begun. */
export interface BesideCopy {
  /** What this thread computes on the device from now on comes behind it; the thread does not wait. */
  follow(): void;
  /** Fulfilled once it is made, while this thread goes on. */
  arrived(): Promise<void>;
}

/**
 * Begins to copy all elements between the host and a device, in a stream of its own, behind what this thread has given the
 * device so far. Until it is made, `into` must not be read and `from` must not be written; memory of the device may be given up at
 * once.
 * @param into - contiguous, of the dtype and the number of elements of `from`, as that is
 * @throws {TroupeError} `TENSOR_ARGUMENT` unless one is the host's and the other a device's
 */
export function copyBeside(into: Tensor, from: Tensor): BesideCopy {
  const copy = native().copyBeside(liveHandle(into, "copyBeside"), liveHandle(from, "copyBeside"));
  return { follow: () => native().followCopy(copy), arrived: () => native().copyArrived(copy) };
}

/**
 * The values of a tensor in the host's memory, once they are there: no thread waits for the device. What comes later in this
 * thread's stream does not wait either.
 * @param tensor - contiguous; passes
 * @returns one-dimensional where it was a device's; the caller's
 */
export async function onHost(tensor: Tensor): Promise<Tensor> {
  if (tensor.device === "cpu") return tensor;
  const host = hold(() => emptyPinned(tensor));
  const copy = copyBeside(host, tensor);
  tensor.dispose();
  await copy.arrived();
  return host;
}
