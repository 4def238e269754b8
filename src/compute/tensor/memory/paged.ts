import { type DType, dtypeCode } from "../dtype.ts";
import { frame, native } from "../native.ts";
import { adopt, liveHandle, type Tensor } from "../tensor.ts";

/**
 * A new 1-D tensor over whole pages of its own, uninitialised, that {@link vacate} gives back to the system for a while.
 * It crosses to other processes of this host as that of `emptyShared` does.
 * @returns as many elements as were asked for, and those that fill the last page
 * @throws {TroupeError} `SHARED_MEMORY_FULL`
 */
export function emptyPaged(numel: number, dtype: DType): Tensor {
  return adopt(native().emptyPaged(dtypeCode(dtype), numel));
}

/**
 * Gives the memory behind a tensor of {@link emptyPaged} back to the system, whatever other tensors, threads and processes
 * are over it too: they stay what they are, but until {@link occupy} nobody may read or write them, which is for the
 * caller to see to; what is read is zero. The ledger counts the memory no longer. Twice is once.
 * @throws {TroupeError} `TENSOR_ARGUMENT` for other memory
 */
export function vacate(tensor: Tensor): void {
  native().vacate(liveHandle(tensor, "vacate"));
}

/**
 * Takes back what {@link vacate} gave up, as zeros. Twice is once.
 * @throws {TroupeError} `SHARED_MEMORY_FULL`; as {@link vacate}
 */
export function occupy(tensor: Tensor): void {
  native().occupy(liveHandle(tensor, "occupy"));
}

/**
 * Tells this thread that the memory behind tensors is given up, or back: reading one throws `TENSOR_OFFLOADED` meanwhile. They
 * keep their place in the graph. Views made before are not told.
 */
export function markOffloaded(tensors: readonly Tensor[], away: boolean): void {
  tensors.forEach((tensor, index) => {
    frame[index] = liveHandle(tensor, "markOffloaded");
  });
  native().markOffloaded(tensors.length, away);
}

/** @returns whether two tensors are over one memory, wherever in it */
export function sharesMemory(one: Tensor, other: Tensor): boolean {
  return native().sharesMemory(liveHandle(one, "sharesMemory"), liveHandle(other, "sharesMemory"));
}
