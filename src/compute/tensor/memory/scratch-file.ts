import { type DType, dtypeCode } from "../dtype.ts";
import { frame, native } from "../native.ts";
import { adopt, liveHandle, type Tensor } from "../tensor.ts";

/** What the memory, the place and the size of every transfer of a {@link ScratchFile} are whole multiples of. */
export const PAGE_BYTES = 4096;

/**
 * A nameless file of fixed size, for tensors that are larger than memory. No directory lists it and nothing is left of it
 * when it is closed or its process ends, however it ends. Its bytes go past the system's page cache where the file system
 * takes that. Native threads move them: reads and writes overlap each other and whatever this thread computes.
 */
export class ScratchFile implements Disposable {
  readonly sizeBytes: number;
  /** Whether transfers pass the page cache by. */
  readonly direct: boolean;
  readonly #file: number;

  /**
   * Reserves the file's whole size.
   * @param directory - on the disk that is to hold it
   * @throws {TroupeError} `SCRATCH_FILE` where the disk is full or the directory cannot be written
   */
  constructor(directory: string, sizeBytes: number) {
    this.sizeBytes = sizeBytes;
    this.#file = native().openScratch(directory, sizeBytes);
    this.direct = native().scratchIsDirect(this.#file);
  }

  /**
   * Fills a tensor from the file; until the promise is fulfilled it may hold anything.
   * @param into - whole pages, as {@link pageAligned} makes them
   * @throws {TroupeError} `SCRATCH_FILE` when the disk fails; `TENSOR_ARGUMENT` unless memory and place are whole pages
   */
  read(into: Tensor, offsetBytes: number): Promise<void> {
    return native().readScratch(this.#file, liveHandle(into, "scratch"), offsetBytes);
  }

  /**
   * Writes a tensor into the file; it must not change until the promise is fulfilled. What a read that begins before then
   * finds at that place is undefined.
   * @throws as {@link read}
   */
  write(from: Tensor, offsetBytes: number): Promise<void> {
    return native().writeScratch(this.#file, liveHandle(from, "scratch"), offsetBytes);
  }

  /** Begins {@link read} for a thread that blocks. */
  beginRead(into: Tensor, offsetBytes: number): BlockingTransfer {
    return new BlockingTransfer(
      native().beginScratch(this.#file, liveHandle(into, "scratch"), offsetBytes, false),
    );
  }

  /** Begins {@link write} for a thread that blocks. */
  beginWrite(from: Tensor, offsetBytes: number): BlockingTransfer {
    return new BlockingTransfer(
      native().beginScratch(this.#file, liveHandle(from, "scratch"), offsetBytes, true),
    );
  }

  /** Gives the file up; what is under way still ends. */
  [Symbol.dispose](): void {
    native().closeScratch(this.#file);
  }
}

/** A tensor on its way to or from a file. */
export class BlockingTransfer {
  readonly #transfer: number;

  /** For {@link ScratchFile} only. */
  constructor(transfer: number) {
    this.#transfer = transfer;
  }

  /** Blocks this thread until it is through; once. @throws {TroupeError} `SCRATCH_FILE` when the disk fails, or at the deadline */
  wait(deadlineMs: number): void {
    native().awaitScratch(this.#transfer, deadlineMs);
  }
}

/**
 * Frees the memory of `aliases`, tensors over the whole of one memory, unless anything else uses it: a view, another thread,
 * the graph. They stay what they are, but reading one throws `TENSOR_OFFLOADED` until {@link takeMemoryBack}.
 * @returns whether it did
 */
export function giveMemoryUp(aliases: readonly Tensor[]): boolean {
  return native().giveMemoryUp(inFrame(aliases, "giveMemoryUp"));
}

/** Gives tensors that {@link giveMemoryUp} took it from memory again, with any content. */
export function takeMemoryBack(aliases: readonly Tensor[]): void {
  native().takeMemoryBack(inFrame(aliases, "takeMemoryBack"));
}

function inFrame(tensors: readonly Tensor[], op: string): number {
  tensors.forEach((tensor, index) => {
    frame[index] = liveHandle(tensor, op);
  });
  return tensors.length;
}

/** A new 1-D tensor with memory that begins on a page; uninitialised. For {@link ScratchFile}. */
export function pageAligned(numel: number, dtype: DType): Tensor {
  return adopt(native().pageAligned(dtypeCode(dtype), numel));
}
