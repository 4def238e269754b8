import { permute } from "../permutation.ts";
import { philox4x32, wordsOf } from "../philox.ts";

/** A record by its block and its place among the records of the block. */
export interface BlockPlace {
  readonly block: number;
  readonly row: number;
}

/** A block's size, for its order. */
export interface BlockSize {
  readonly numRecords: number;
  /** In memory. */
  readonly sizeBytes: number;
}

/** Neighbouring blocks of an epoch, whose records are mixed. */
interface Window {
  /** Its number in the epoch. */
  readonly number: number;
  readonly blocks: Uint32Array;
  /** Positions of its first record and after its last. */
  readonly begin: number;
  readonly end: number;
}

/** The most epochs whose windows are kept: the present one and the next. */
const EPOCHS_KEPT = 2;
/** Keeps these draws apart from those of `permute`, whose rounds have smaller numbers. */
const OF_BLOCKS = 64;

/** Options of {@link BlockOrder}. */
export interface BlockOrderOptions {
  /** A window ends with the block that reaches so many bytes. */
  readonly windowBytes: number;
  readonly seed: number;
  readonly isShuffled: boolean;
}

/**
 * The order in which the records of blocks are read. Each epoch has every record once: blocks are shuffled, and then the records
 * within each window of neighbouring blocks. It is a pure function of the seed, the epoch and the sizes of the blocks.
 */
export class BlockOrder {
  readonly #sizes: readonly BlockSize[];
  readonly #options: BlockOrderOptions;
  readonly #epochs = new Map<number, readonly Window[]>();
  /** Records in an epoch. */
  readonly length: number;

  constructor(sizes: readonly BlockSize[], options: BlockOrderOptions) {
    this.#sizes = sizes;
    this.#options = options;
    this.length = sizes.reduce((sum, { numRecords }) => sum + numRecords, 0);
  }

  /** The record at `position` of the endless sequence of epochs. */
  at(position: number): BlockPlace {
    const { seed, isShuffled } = this.#options;
    const epoch = Math.floor(position / this.length);
    const { blocks, number, begin, end } = this.#windowAt(position);
    const place = position - epoch * this.length - begin;
    // Each window has a shuffle of its own: a window has at least one block.
    const shuffle = epoch * this.#sizes.length + number;
    let row = isShuffled ? permute(place, end - begin, seed, shuffle) : place;
    for (const block of blocks) {
      const { numRecords } = this.#sizes[block] as BlockSize;
      if (row < numRecords) return { block, row };
      row -= numRecords;
    }
    throw new Error(`[data] position ${position} is in no block`);
  }

  /** The blocks of the window after that of `position`, as large a share of them as was read of the present one. */
  ahead(position: number): Uint32Array {
    const { begin, end } = this.#windowAt(position);
    const first = Math.floor(position / this.length) * this.length;
    const { blocks } = this.#windowAt(first + end);
    return blocks.subarray(0, Math.ceil((blocks.length * (position - first - begin + 1)) / (end - begin)));
  }

  #windowAt(position: number): Window {
    const epoch = Math.floor(position / this.length);
    const windows = this.#windows(epoch);
    const place = position - epoch * this.length;
    let [low, high] = [0, windows.length - 1];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((windows[middle] as Window).end > place) high = middle;
      else low = middle + 1;
    }
    return windows[low] as Window;
  }

  #windows(epoch: number): readonly Window[] {
    const known = this.#epochs.get(epoch);
    if (known !== undefined) return known;
    const { windowBytes, seed, isShuffled } = this.#options;
    const blocks = Uint32Array.from(this.#sizes, (_, block) => block);
    if (isShuffled) shuffle(blocks, seed, epoch);
    const windows: Window[] = [];
    let [first, begin, end, sizeBytes] = [0, 0, 0, 0];
    for (const [place, block] of blocks.entries()) {
      const size = this.#sizes[block] as BlockSize;
      end += size.numRecords;
      sizeBytes += size.sizeBytes;
      if (sizeBytes < windowBytes && place + 1 < blocks.length) continue;
      windows.push({ number: windows.length, blocks: blocks.subarray(first, place + 1), begin, end });
      [first, begin, sizeBytes] = [place + 1, end, 0];
    }
    this.#epochs.set(epoch, windows);
    const [oldest] = this.#epochs.keys();
    if (this.#epochs.size > EPOCHS_KEPT && oldest !== undefined) this.#epochs.delete(oldest);
    return windows;
  }
}

/** Fisher and Yates's shuffle, by draws that are a function of seed and epoch. */
function shuffle(blocks: Uint32Array, seed: number, epoch: number): void {
  const key = wordsOf(seed);
  const [low, high] = wordsOf(epoch);
  for (let last = blocks.length - 1; last > 0; last--) {
    const [random, more] = philox4x32([last, OF_BLOCKS, low, high], key);
    const other = Math.floor(((random * 2 ** 21 + (more >>> 11)) / 2 ** 53) * (last + 1));
    const moved = blocks[last] as number;
    blocks[last] = blocks[other] as number;
    blocks[other] = moved;
  }
}
