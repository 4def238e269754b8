import { permute } from "../permutation.ts";
import { philox4x32, wordsOf } from "../philox.ts";

/** A record by its block and its place among the records of the block. */
export interface BlockPlace {
  readonly block: number;
  readonly row: number;
}

/** The order of an epoch. */
interface Epoch {
  /** The blocks in their order. */
  readonly blocks: Uint32Array;
  /** For each window, the position after its last record. */
  readonly ends: Float64Array;
}

/** The most epochs kept: the present one and the next. */
const EPOCHS_KEPT = 2;
/** Keeps these draws apart from those of `permute`, whose rounds have smaller numbers. */
const OF_BLOCKS = 64;

/**
 * The order in which the records of blocks are read. Each epoch has every record once: blocks are shuffled, and then the records
 * within each window of so many neighbouring blocks. It is a pure function of the seed, the epoch and the sizes of the blocks.
 */
export class BlockOrder {
  readonly #counts: readonly number[];
  readonly #window: number;
  readonly #seed: number;
  readonly #isShuffled: boolean;
  readonly #epochs = new Map<number, Epoch>();
  /** Records in an epoch. */
  readonly length: number;

  /** @param counts - records of each block @param window - blocks of which the records are mixed */
  constructor(
    counts: readonly number[],
    {
      window,
      seed,
      isShuffled,
    }: { readonly window: number; readonly seed: number; readonly isShuffled: boolean },
  ) {
    this.#counts = counts;
    this.#window = window;
    this.#seed = seed;
    this.#isShuffled = isShuffled;
    this.length = counts.reduce((sum, count) => sum + count, 0);
  }

  /** The record at `position` of the endless sequence of epochs. */
  at(position: number): BlockPlace {
    const { epoch, blocks, number, begin, end } = this.#windowAt(position);
    const inEpoch = position - epoch * this.length;
    const size = end - begin;
    const shuffle = epoch * Math.ceil(this.#counts.length / this.#window) + number;
    let row = this.#isShuffled ? permute(inEpoch - begin, size, this.#seed, shuffle) : inEpoch - begin;
    for (const block of blocks) {
      const count = this.#counts[block] as number;
      if (row < count) return { block, row };
      row -= count;
    }
    throw new Error(`[data] position ${position} is in no block`);
  }

  /** The blocks from which the window after that of `position` is read, as many as the share of the present one that is read. */
  ahead(position: number): readonly number[] {
    const { epoch, blocks, begin, end } = this.#windowAt(position);
    const share = (position - epoch * this.length - begin + 1) / (end - begin);
    const next = this.#windowAt(epoch * this.length + end).blocks;
    return [...next.slice(0, Math.ceil(share * blocks.length))];
  }

  #windowAt(position: number) {
    const epoch = Math.floor(position / this.length);
    const { blocks, ends } = this.#epoch(epoch);
    const place = position - epoch * this.length;
    let [low, high] = [0, ends.length - 1];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((ends[middle] as number) > place) high = middle;
      else low = middle + 1;
    }
    const begin = low === 0 ? 0 : (ends[low - 1] as number);
    const first = low * this.#window;
    return {
      epoch,
      number: low,
      begin,
      end: ends[low] as number,
      blocks: blocks.subarray(first, first + this.#window),
    };
  }

  #epoch(number: number): Epoch {
    const known = this.#epochs.get(number);
    if (known !== undefined) return known;
    const blocks = Uint32Array.from(this.#counts, (_, block) => block);
    if (this.#isShuffled) shuffle(blocks, this.#seed, number);
    const ends = new Float64Array(Math.ceil(blocks.length / this.#window));
    let end = 0;
    for (const [place, block] of blocks.entries()) {
      end += this.#counts[block] as number;
      ends[Math.floor(place / this.#window)] = end;
    }
    const made = { blocks, ends };
    this.#epochs.set(number, made);
    const [oldest] = this.#epochs.keys();
    if (this.#epochs.size > EPOCHS_KEPT && oldest !== undefined) this.#epochs.delete(oldest);
    return made;
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
