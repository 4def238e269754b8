import { type DType, dtypeCode } from "../dtype.ts";
import { frame, native } from "../native.ts";
import { adopt, liveHandle, type Tensor } from "../tensor.ts";

/**
 * Makes a 1-D tensor on memory pages of its own, uninitialized, whose memory {@link vacate} can return to the system for a
 * while. It can be sent to other processes of this host as a tensor of `emptyShared` can.
 * @returns a tensor with `numel` elements and those that fill the last page
 * @throws {TroupeError} `SHARED_MEMORY_FULL`
 */
export function emptyPaged(numel: number, dtype: DType): Tensor {
  return adopt(native().emptyPaged(dtypeCode(dtype), numel));
}

/**
 * Returns the memory of a tensor of {@link emptyPaged} to the system, even if other tensors, threads and processes share it.
 * Until {@link occupy} the caller must make sure that none of them is read or written; a read gives zeros. The ledger no
 * longer counts the memory. Idempotent.
 * @throws {TroupeError} `TENSOR_ARGUMENT` for other memory
 */
export function vacate(tensor: Tensor): void {
  native().vacate(liveHandle(tensor, "vacate"));
}

/**
 * Takes memory again that {@link vacate} returned, filled with zeros. Idempotent.
 * @throws {TroupeError} `SHARED_MEMORY_FULL`, or as {@link vacate}
 */
export function occupy(tensor: Tensor): void {
  native().occupy(liveHandle(tensor, "occupy"));
}

/**
 * Marks tensors of this thread as offloaded, or as back: reading an offloaded one throws `TENSOR_OFFLOADED`. They keep their
 * place in the graph. Views made before are not marked.
 */
export function markOffloaded(tensors: readonly Tensor[], away: boolean): void {
  tensors.forEach((tensor, index) => {
    frame[index] = liveHandle(tensor, "markOffloaded");
  });
  native().markOffloaded(tensors.length, away);
}

/** Whether two tensors have the same storage. */
export function sharesMemory(one: Tensor, other: Tensor): boolean {
  return native().sharesMemory(liveHandle(one, "sharesMemory"), liveHandle(other, "sharesMemory"));
}
