import {
  type BlockingTransfer,
  type DType,
  giveMemoryUp,
  hold,
  itemBytes,
  noGrad,
  PAGE_BYTES,
  pageAligned,
  ScratchFile,
  scope,
  type Tensor,
  tagMemory,
  takeMemoryBack,
} from "../tensor/index.ts";

/** One offloaded storage. */
export interface OffloadedActivation {
  /** The tensors that share the storage. */
  readonly aliases: readonly Tensor[];
  readonly slots: ScratchSlots;
  readonly slot: number;
}

/** A buffer between memory and file. */
interface Stage {
  buffer: Tensor;
  /** The activation whose bytes it holds, or is about to. */
  holds: OffloadedActivation | undefined;
  /** The transfer under way between it and the file. */
  transfer: BlockingTransfer | undefined;
  /** Whether its bytes are about to be needed. */
  expected: boolean;
}

/** Smaller storages are not worth a transfer. */
const LEAST_BYTES = 64 * 1024;

/**
 * Offloads a rank's activations to files between forward and backward, for a thread that computes and blocks. Each storage is
 * copied into one of three buffers and freed at once. Native threads write the buffer while the next block computes, and fill
 * it again while the backward of the block after it runs.
 */
export class ActivationOffloader {
  readonly #directory: string;
  readonly #deadlineMs: number;
  readonly #leastBytes: number;
  /** Slots by their size in bytes. */
  readonly #slots = new Map<number, ScratchSlots>();
  /** Buffers, the least recently used first. */
  #stages: Stage[] = [];

  /**
   * @param directory - a directory on the disk to use
   * @param options - `deadlineMs`: how long the disk may take for one storage; `leastBytes`: smaller storages are not offloaded
   */
  constructor(
    directory: string,
    { deadlineMs, leastBytes = LEAST_BYTES }: { readonly deadlineMs: number; readonly leastBytes?: number },
  ) {
    this.#directory = directory;
    this.#deadlineMs = deadlineMs;
    this.#leastBytes = leastBytes;
  }

  /**
   * Offloads the storage of a tensor; see `Offloader` in `src/compute/parallel/tape/offloader.ts`.
   * @throws {TroupeError} `SCRATCH_FILE` if the disk is full or fails, now or at an earlier transfer
   */
  keep(aliases: readonly Tensor[]): OffloadedActivation | undefined {
    const [first] = aliases;
    if (first === undefined || bytesOf(first) < this.#leastBytes) return undefined;
    const stage = this.#freeStage(first.numel, first.dtype);
    copy(stage.buffer, first);
    if (!giveMemoryUp(aliases)) {
      this.#stages.unshift(stage);
      return undefined;
    }
    const slots = this.#slotsFor(bytesOf(first));
    const offloaded = { aliases, slots, slot: slots.take() };
    const { file, offsetBytes } = slots.at(offloaded.slot);
    this.#put(stage, offloaded, (pages) => file.beginWrite(pages, offsetBytes));
    return offloaded;
  }

  /** Begins to read an activation that will soon be needed. */
  expect(offloaded: OffloadedActivation): void {
    const present = this.#stages.find(({ holds }) => holds === offloaded);
    const { file, offsetBytes } = offloaded.slots.at(offloaded.slot);
    if (present === undefined) {
      const [first] = offloaded.aliases as [Tensor];
      const stage = this.#freeStage(first.numel, first.dtype);
      this.#put(stage, offloaded, (pages) => file.beginRead(pages, offsetBytes));
      stage.expected = true;
    } else {
      present.expected = true;
    }
  }

  /** Gives the tensors their memory back, with its contents. */
  bring(offloaded: OffloadedActivation): void {
    this.expect(offloaded);
    const stage = this.#stages.find(({ holds }) => holds === offloaded) as Stage;
    this.#finish(stage);
    const [first] = offloaded.aliases as [Tensor];
    takeMemoryBack(offloaded.aliases);
    copy(first, stage.buffer);
    this.drop(offloaded);
  }

  /** Drops an activation that will not be needed. */
  drop(offloaded: OffloadedActivation): void {
    const stage = this.#stages.find(({ holds }) => holds === offloaded);
    if (stage !== undefined) {
      // Its place in the file may be written again at once.
      this.#finish(stage);
      stage.holds = undefined;
      stage.expected = false;
      // Use this buffer next.
      this.#stages = [stage, ...this.#stages.filter((other) => other !== stage)];
    }
    offloaded.slots.give(offloaded.slot);
  }

  /** Releases buffers and files. */
  dispose(): void {
    for (const stage of this.#stages.splice(0)) {
      this.#finish(stage);
      stage.buffer.dispose();
    }
    for (const slots of this.#slots.values()) slots.dispose();
    this.#slots.clear();
  }

  /** Returns a free buffer with room for `numel` elements, without adding it to the stages. */
  #freeStage(numel: number, dtype: DType): Stage {
    const room = Math.ceil(bytesFor(numel, dtype) / itemBytes(dtype));
    if (this.#stages.length < NUM_STAGES)
      return { buffer: bufferOf(room, dtype), holds: undefined, transfer: undefined, expected: false };
    const stage = this.#stages.find(({ expected }) => !expected) ?? (this.#stages[0] as Stage);
    this.#stages.splice(this.#stages.indexOf(stage), 1);
    this.#finish(stage);
    stage.holds = undefined;
    stage.expected = false;
    if (stage.buffer.dtype !== dtype || stage.buffer.numel < room) {
      stage.buffer.dispose();
      stage.buffer = bufferOf(room, dtype);
    }
    return stage;
  }

  #put(stage: Stage, holds: OffloadedActivation, begin: (pages: Tensor) => BlockingTransfer): void {
    const { dtype } = stage.buffer;
    stage.holds = holds;
    stage.transfer = scope(() => begin(stage.buffer.narrow(0, 0, holds.slots.slotBytes / itemBytes(dtype))));
    this.#stages.push(stage);
  }

  #finish(stage: Stage): void {
    const { transfer } = stage;
    stage.transfer = undefined;
    transfer?.wait(this.#deadlineMs);
  }

  #slotsFor(sizeBytes: number): ScratchSlots {
    const slotBytes = roundToPages(sizeBytes);
    const slots = this.#slots.get(slotBytes) ?? new ScratchSlots(this.#directory, slotBytes);
    this.#slots.set(slotBytes, slots);
    return slots;
  }
}

const NUM_STAGES = 3;

const roundToPages = (bytes: number) => Math.ceil(bytes / PAGE_BYTES) * PAGE_BYTES;

const bytesFor = (numel: number, dtype: DType) => roundToPages(numel * itemBytes(dtype));

const bytesOf = (tensor: Tensor) => tensor.numel * itemBytes(tensor.dtype);

function bufferOf(numel: number, dtype: DType): Tensor {
  return tagMemory("staging", () => hold(() => pageAligned(numel, dtype)));
}

/** Copies as many elements as both have, in order. */
function copy(into: Tensor, from: Tensor): void {
  const numel = Math.min(into.numel, from.numel);
  const flat = (tensor: Tensor) => tensor.view([-1]).narrow(0, 0, numel);
  // A source may be transposed or expanded. The result of copy_ holds the memory too, so it must not leave the scope.
  noGrad(() => scope(() => void flat(into).copy_(flat(from.contiguous()))));
}

const SLOTS_IN_FILE = 16;

/** Slots of one size in scratch files, which are added as needed. */
class ScratchSlots {
  readonly slotBytes: number;
  readonly #directory: string;
  readonly #files: ScratchFile[] = [];
  readonly #free: number[] = [];

  /** @param slotBytes - size of a slot, in bytes; complete pages */
  constructor(directory: string, slotBytes: number) {
    this.#directory = directory;
    this.slotBytes = slotBytes;
  }

  /** Takes a free slot. @throws {TroupeError} `SCRATCH_FILE` if the disk is full */
  take(): number {
    const free = this.#free.pop();
    if (free !== undefined) return free;
    const begin = this.#files.length * SLOTS_IN_FILE;
    this.#files.push(new ScratchFile(this.#directory, SLOTS_IN_FILE * this.slotBytes));
    for (let slot = begin + SLOTS_IN_FILE - 1; slot > begin; slot--) this.#free.push(slot);
    return begin;
  }

  give(slot: number): void {
    this.#free.push(slot);
  }

  /** Returns the file of a slot and its offset there. */
  at(slot: number): { readonly file: ScratchFile; readonly offsetBytes: number } {
    const file = this.#files[Math.floor(slot / SLOTS_IN_FILE)] as ScratchFile;
    return { file, offsetBytes: (slot % SLOTS_IN_FILE) * this.slotBytes };
  }

  dispose(): void {
    for (const file of this.#files.splice(0)) file[Symbol.dispose]();
  }
}
