import { TroupeError } from "../../errors/index.ts";
import { type NativeInfo, native } from "./native.ts";

let invariantHere = false;

/**
 * Sets how many threads an operator may use when called from this JavaScript thread, for OpenMP, MKL and oneDNN. Other
 * threads keep theirs, so that two ranks on two cores can take one each.
 */
export function setNumThreads(count: number): void {
  if (!Number.isSafeInteger(count) || count < 1)
    throw new TroupeError("TENSOR_ARGUMENT", {
      where: "setNumThreads",
      expected: "a count of at least 1",
      got: `${count}`,
      fields: { count },
    });
  native().setNumThreads(count);
}

/** Returns how many threads an operator may use when called from this JavaScript thread. */
export function numThreads(): number {
  return native().numThreads();
}

/**
 * Chooses how this thread computes forwards: if `invariant`, each row of a product and each query of an attention on its
 * own, in an order that depends on nothing but the row. Its bits are then the same in any batch and at any place. Backward is not
 * affected.
 * @returns what it was before
 */
export function setInvariant(invariant: boolean): boolean {
  invariantHere = invariant;
  return native().setInvariant(invariant);
}

/** Whether this thread computes forwards invariantly, see {@link setInvariant}. */
export function isInvariant(): boolean {
  return invariantHere;
}

/**
 * Sets the folder in which the processes of this host share tensors, and this process's number in it. Call it before any
 * tensor is sent.
 * @throws {TroupeError} `SHARED_FOLDER_TAKEN` while this process is in another one
 */
export function enterSharedFolder(folder: string, processIndex: number): void {
  native().enterSharedFolder(folder, processIndex);
}

/** Leaves the folder once the other processes have ended; tensors in it live on. */
export function leaveSharedFolder(): void {
  native().leaveSharedFolder();
}

/** Maps a complete file, for this process and others to read and write; unmapped when the buffer is garbage-collected. */
export function mapShared(path: string): ArrayBuffer {
  return native().mapShared(path);
}

/** Returns facts about the addon's build and its machine. */
export function nativeInfo(): NativeInfo {
  return native().nativeInfo();
}
