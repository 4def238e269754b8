import { dtypeCode } from "../dtype.ts";
import { native } from "../native.ts";
import { hold } from "../scope.ts";
import { adopt, liveHandle, type Tensor } from "../tensor.ts";

/**
 * Makes a 1-D tensor in pinned host memory for {@link copyBeside}, uninitialized, with the dtype and the number of elements
 * of `like`.
 * @param like - a tensor of the device
 */
export function emptyPinned(like: Tensor): Tensor {
  return adopt(native().emptyPinned(dtypeCode(like.dtype), like.numel, liveHandle(like, "emptyPinned")));
}

/** A copy between the host and a device under way. */
export interface BesideCopy {
  /** Makes later work of this thread on the device wait for the copy; the thread itself does not wait. */
  follow(): void;
  /** Resolves once the copy is complete, without blocking the thread. */
  arrived(): Promise<void>;
}

/**
 * Begins to copy all elements between the host and a device, in a stream of its own, after the work that this thread has
 * given the device so far. Until it is complete, `into` must not be read and `from` must not be written; device memory may be
 * released at once.
 * @param into - contiguous, with the dtype and the number of elements of `from`, which is contiguous too
 * @throws {TroupeError} `TENSOR_ARGUMENT` unless one is the host's and the other a device's
 */
export function copyBeside(into: Tensor, from: Tensor): BesideCopy {
  const copy = native().copyBeside(liveHandle(into, "copyBeside"), liveHandle(from, "copyBeside"));
  return { follow: () => native().followCopy(copy), arrived: () => native().copyArrived(copy) };
}

/**
 * Copies a tensor to host memory and resolves when the values are there. Neither the thread nor its stream waits.
 * @param tensor - contiguous; ownership passes
 * @returns the tensor itself if it was on the host, otherwise a 1-D copy; the caller owns it
 */
export async function onHost(tensor: Tensor): Promise<Tensor> {
  if (tensor.device === "cpu") return tensor;
  const host = hold(() => emptyPinned(tensor));
  const copy = copyBeside(host, tensor);
  tensor.dispose();
  await copy.arrived();
  return host;
}
