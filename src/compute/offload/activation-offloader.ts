import {
  type BlockingTransfer,
  type DType,
  giveMemoryUp,
  hold,
  itemBytes,
  noGrad,
  PAGE_BYTES,
  pageAligned,
  scope,
  type Tensor,
  tagMemory,
  takeMemoryBack,
} from "../tensor/index.ts";
import { Shelf } from "./shelf.ts";

/** One memory that is away. */
export interface OffloadedActivation {
  /** The tensors whose memory it was. */
  readonly aliases: readonly Tensor[];
  readonly shelf: Shelf;
  readonly place: number;
}

/** A buffer between memory and file. */
interface Stage {
  buffer: Tensor;
  /** Whose bytes it holds, or is about to. */
  holds: OffloadedActivation | undefined;
  /** What is under way between it and the file. */
  transfer: BlockingTransfer | undefined;
  /** Whether its bytes are about to be asked for. */
  expected: boolean;
}

/** What is smaller is not worth its way. */
const LEAST_BYTES = 64 * 1024;

/**
 * Offloads what a rank keeps between forward and backward to files, for a thread that computes and blocks. Each memory is
 * copied into one of three buffers and freed at once; native threads write the buffer while the next block computes, and
 * fill it again while the block behind it walks backwards.
 */
export class ActivationOffloader {
  readonly #directory: string;
  readonly #deadlineMs: number;
  readonly #leastBytes: number;
  /** By the bytes of a place. */
  readonly #shelves = new Map<number, Shelf>();
  /** The one longest without use first. */
  #stages: Stage[] = [];

  /**
   * @param directory - on the disk that is to hold the files
   * @param options - `deadlineMs`: how long the disk may take for one memory; `leastBytes`: what is smaller stays
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
   * Takes the memory of a tensor in; see `Offloader` in `src/compute/parallel/tape/offloader.ts`.
   * @throws {TroupeError} `SCRATCH_FILE` where the disk is full or fails, now or with what was kept before
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
    const shelf = this.#shelfFor(bytesOf(first));
    const offloaded = { aliases, shelf, place: shelf.take() };
    const { file, offsetBytes } = shelf.at(offloaded.place);
    this.#put(stage, offloaded, (pages) => file.beginWrite(pages, offsetBytes));
    return offloaded;
  }

  /** Begins to read what will soon be asked for. */
  expect(offloaded: OffloadedActivation): void {
    const present = this.#stages.find(({ holds }) => holds === offloaded);
    const { file, offsetBytes } = offloaded.shelf.at(offloaded.place);
    if (present === undefined) {
      const [first] = offloaded.aliases as [Tensor];
      const stage = this.#freeStage(first.numel, first.dtype);
      this.#put(stage, offloaded, (pages) => file.beginRead(pages, offsetBytes));
      stage.expected = true;
    } else {
      present.expected = true;
    }
  }

  /** Gives the tensors their memory back, as it was. */
  bring(offloaded: OffloadedActivation): void {
    this.expect(offloaded);
    const stage = this.#stages.find(({ holds }) => holds === offloaded) as Stage;
    this.#finish(stage);
    const [first] = offloaded.aliases as [Tensor];
    takeMemoryBack(offloaded.aliases);
    copy(first, stage.buffer);
    this.drop(offloaded);
  }

  /** Forgets what nobody will ask for. */
  drop(offloaded: OffloadedActivation): void {
    const stage = this.#stages.find(({ holds }) => holds === offloaded);
    if (stage !== undefined) {
      stage.holds = undefined;
      stage.expected = false;
      // Once its transfer has ended it is the next to be used.
      this.#stages = [stage, ...this.#stages.filter((other) => other !== stage)];
    }
    offloaded.shelf.give(offloaded.place);
  }

  /** Gives buffers and files up. */
  dispose(): void {
    for (const stage of this.#stages.splice(0)) {
      this.#finish(stage);
      stage.buffer.dispose();
    }
    for (const shelf of this.#shelves.values()) shelf.dispose();
    this.#shelves.clear();
  }

  /** A buffer that nobody needs any more, with room for so many elements; not among the stages until it is put. */
  #freeStage(numel: number, dtype: DType): Stage {
    const room = Math.ceil(bytesFor(numel, dtype) / itemBytes(dtype));
    if (this.#stages.length < NUM_STAGES) {
      return { buffer: bufferOf(room, dtype), holds: undefined, transfer: undefined, expected: false };
    }
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
    stage.transfer = scope(() => begin(stage.buffer.narrow(0, 0, holds.shelf.placeBytes / itemBytes(dtype))));
    this.#stages.push(stage);
  }

  #finish(stage: Stage): void {
    const { transfer } = stage;
    stage.transfer = undefined;
    transfer?.wait(this.#deadlineMs);
  }

  #shelfFor(sizeBytes: number): Shelf {
    const placeBytes = wholePages(sizeBytes);
    const shelf = this.#shelves.get(placeBytes) ?? new Shelf(this.#directory, placeBytes);
    this.#shelves.set(placeBytes, shelf);
    return shelf;
  }
}

const NUM_STAGES = 3;

const wholePages = (bytes: number) => Math.ceil(bytes / PAGE_BYTES) * PAGE_BYTES;

const bytesFor = (numel: number, dtype: DType) => wholePages(numel * itemBytes(dtype));

const bytesOf = (tensor: Tensor) => tensor.numel * itemBytes(tensor.dtype);

function bufferOf(numel: number, dtype: DType): Tensor {
  return tagMemory("staging", () => hold(() => pageAligned(numel, dtype)));
}

/** Copies as many elements as both have, in their order. */
function copy(into: Tensor, from: Tensor): void {
  const numel = Math.min(into.numel, from.numel);
  const flat = (tensor: Tensor) => tensor.view([-1]).narrow(0, 0, numel);
  // What copy_ returns holds the memory too: it must not leave the scope.
  noGrad(() => scope(() => void flat(into).copy_(flat(from))));
}
