import { onDevice } from "./device.ts";
import { dtypeCode } from "./dtype.ts";
import { native } from "./native.ts";
import { copy_ } from "./ops.generated.ts";
import { hold, scope } from "./scope.ts";
import { adopt, liveHandle, type Tensor } from "./tensor.ts";

/**
 * A new 1-D tensor in the host's memory that a device copies from and to by itself, for {@link copyBeside}: uninitialised, of the
 * dtype and the number of elements of `like`.
 * @param like - of the device
 */
export function emptyPinned(like: Tensor): Tensor {
  return adopt(native().emptyPinned(dtypeCode(like.dtype), like.numel, liveHandle(like, "emptyPinned")));
}

/** A started copy between the host and a device. */
export interface BesideCopy {
  /** Makes the device's later work of this thread wait for the copy; the thread itself does not wait. */
  follow(): void;
  /** Resolves when the copy is done. */
  arrived(): Promise<void>;
}

/**
 * Begins to copy all elements between the host and a device, in a stream of its own, behind what this thread has given the device
 * so far. Until it is made, `into` must not be read and `from` must not be written; memory of the device may be given up at once.
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

/**
 * Copies some elements to the same places of another tensor, in a thread that gives way to those that compute: this one goes on
 * meanwhile. One copy is made after the other, as they were asked for. Until the promise is fulfilled the source must not change,
 * and of the target nobody may read those elements. Both may be disposed at once: their memory lives as long as it is needed.
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

/**
 * Has `change` write to a tensor's elements in host memory: on a device to a copy, which is copied back. For what must have
 * the same bits whatever a device's own arithmetic is, or comes from a file.
 */
export function overHost(tensor: Tensor, change: (host: Tensor) => void): void {
  onDevice("cpu", () =>
    scope(() => {
      const host = tensor.onto("cpu"); // on the host, the tensor itself
      change(host);
      if (tensor.device !== "cpu") copy_(tensor, host);
    }),
  );
}

/** A number that a device computes, on its way. To be asked once; it waits for what comes before the number, and no more. */
export type LateNumber = () => number;

/**
 * Has the one element of a tensor copied to the host as soon as it is computed, while both go on. Of a tensor of the host it is
 * read at once.
 */
export function readLater(tensor: Tensor): LateNumber {
  if (tensor.device === "cpu") {
    const value = tensor.item();
    return () => value;
  }
  const reading = native().beginReading(liveHandle(tensor, "readLater"));
  return () => scope(() => adopt(native().endReading(reading)).item());
}
