import { TroupeError } from "../../errors/index.ts";
import { type NativeInfo, native } from "./native.ts";

/**
 * Threads that an operator may use when called from this JavaScript thread: OpenMP, MKL and oneDNN alike. Other threads
 * keep theirs, so that two ranks on two cores take one each.
 */
export function setNumThreads(count: number): void {
  if (!Number.isSafeInteger(count) || count < 1) {
    throw new TroupeError(
      "TENSOR_ARGUMENT",
      { where: "setNumThreads", expected: "a count of at least 1", got: `${count}` },
      {
        fields: { count },
      },
    );
  }
  native().setNumThreads(count);
}

/** Threads that an operator may use now. */
export function numThreads(): number {
  return native().numThreads();
}

/**
 * Names the folder in which the processes of this host share tensors, and this one's number in it, before any tensor is to
 * cross.
 * @throws {TroupeError} `SHARED_FOLDER_TAKEN` while this process is in another one
 */
export function enterSharedFolder(folder: string, processIndex: number): void {
  native().enterSharedFolder(folder, processIndex);
}

/** Takes that back once the others have ended; tensors that lie there live on. */
export function leaveSharedFolder(): void {
  native().leaveSharedFolder();
}

/** The bytes of a whole file, for this process and others to read and write; unmapped when it is collected. */
export function mapShared(path: string): ArrayBuffer {
  return native().mapShared(path);
}

/** What the addon was built with and runs on. */
export function nativeInfo(): NativeInfo {
  return native().nativeInfo();
}
