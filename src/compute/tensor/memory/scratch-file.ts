import { type DType, dtypeCode } from "../dtype.ts";
import { frame, native } from "../native.ts";
import { adopt, liveHandle, type Tensor } from "../tensor.ts";

/** Page size: the address, the offset and the size of every transfer of a {@link ScratchFile} are multiples of it. */
export const PAGE_BYTES = 4096;

/**
 * An unnamed file of fixed size for tensors that do not fit in memory. It is in no directory and disappears when it is closed
 * or its process ends in any way. It bypasses the system's page cache if the file system allows that. Native threads do the
 * transfers, so that reads and writes overlap each other and this thread's computation.
 */
export class ScratchFile implements Disposable {
  readonly sizeBytes: number;
  /** Whether transfers bypass the page cache. */
  readonly direct: boolean;
  readonly #file: number;

  /**
   * Reserves the complete size of the file.
   * @param directory - a directory on the disk to use
   * @throws {TroupeError} `SCRATCH_FILE` if the disk is full or the directory cannot be written
   */
  constructor(directory: string, sizeBytes: number) {
    this.sizeBytes = sizeBytes;
    this.#file = native().openScratch(directory, sizeBytes);
    this.direct = native().scratchIsDirect(this.#file);
  }

  /**
   * Fills a tensor from the file; until the promise resolves its contents are undefined.
   * @param into - complete pages, as {@link pageAligned} makes them
   * @throws {TroupeError} `SCRATCH_FILE` if the disk fails; `TENSOR_ARGUMENT` unless memory and offset are complete pages
   */
  read(into: Tensor, offsetBytes: number): Promise<void> {
    return native().readScratch(this.#file, liveHandle(into, "scratch"), offsetBytes);
  }

  /**
   * Writes a tensor into the file; it must not change until the promise resolves. A read that begins before then gets
   * undefined contents.
   * @throws as {@link read}
   */
  write(from: Tensor, offsetBytes: number): Promise<void> {
    return native().writeScratch(this.#file, liveHandle(from, "scratch"), offsetBytes);
  }

  /** Begins a {@link read} that the thread waits for by blocking. */
  beginRead(into: Tensor, offsetBytes: number): BlockingTransfer {
    return new BlockingTransfer(
      native().beginScratch(this.#file, liveHandle(into, "scratch"), offsetBytes, false),
    );
  }

  /** Begins a {@link write} that the thread waits for by blocking. */
  beginWrite(from: Tensor, offsetBytes: number): BlockingTransfer {
    return new BlockingTransfer(
      native().beginScratch(this.#file, liveHandle(from, "scratch"), offsetBytes, true),
    );
  }

  /** Closes the file; transfers under way still complete. */
  [Symbol.dispose](): void {
    native().closeScratch(this.#file);
  }
}

/** A transfer between a tensor and a file, under way. */
export class BlockingTransfer {
  readonly #transfer: number;

  /** For {@link ScratchFile} only. */
  constructor(transfer: number) {
    this.#transfer = transfer;
  }

  /**
   * Blocks this thread until it is complete. Call it once. @throws {TroupeError} `SCRATCH_FILE` if the disk fails, or at the
   * deadline
   */
  wait(deadlineMs: number): void {
    native().awaitScratch(this.#transfer, deadlineMs);
  }
}

/**
 * Frees the memory of `aliases`, tensors that each cover all of one storage, unless a view, another thread or the graph uses
 * it. The tensors stay, but reading one throws `TENSOR_OFFLOADED` until {@link takeMemoryBack}.
 * @returns whether the memory was freed
 */
export function giveMemoryUp(aliases: readonly Tensor[]): boolean {
  return native().giveMemoryUp(inFrame(aliases, "giveMemoryUp"));
}

/** Gives tensors new memory after {@link giveMemoryUp}, uninitialized. */
export function takeMemoryBack(aliases: readonly Tensor[]): void {
  native().takeMemoryBack(inFrame(aliases, "takeMemoryBack"));
}

function inFrame(tensors: readonly Tensor[], op: string): number {
  tensors.forEach((tensor, index) => {
    frame[index] = liveHandle(tensor, op);
  });
  return tensors.length;
}

/** Makes an uninitialized 1-D tensor whose memory begins at a page, for {@link ScratchFile}. */
export function pageAligned(numel: number, dtype: DType): Tensor {
  return adopt(native().pageAligned(dtypeCode(dtype), numel));
}
