import type { Gathered, ProcessGroup } from "../../collectives/index.ts";
import {
  type DType,
  empty,
  emptyPaged,
  emptyShared,
  hold,
  ops,
  scope,
  type Tensor,
  tagMemory,
  vacate,
} from "../../tensor/index.ts";
import { type FlatBlock, memberOf, piecesIn, SLICE_ALIGNMENT, sliceOf } from "../blocks/flat-block.ts";
import { splittingOf } from "../layout/zero.ts";
import { ownedRange } from "./owned-range.ts";

interface HeldBlock {
  readonly layout: FlatBlock;
  /** Gathered parameters in the compute dtype, or buffers in float32; at level ≥ 1 ranks that share memory share these bytes. */
  readonly full: Tensor;
  /** Its ranges, if ranks send each other theirs. */
  readonly gathered: Gathered | undefined;
  /** Reduced gradient of the step, see {@link ShardStore.reduce}; at level ≥ 2 only the owned range. */
  gradient: Tensor | undefined;
  /** Its chunks' sums of squares, if they were made with it. */
  squares: Tensor | undefined;
}

/**
 * One rank's memory of every block: gathered parameters, and its share of the reduced gradient until the update. `BlockState`
 * has the optimizer's state. It knows no messages; the shard actor decides when each method runs. All tensors live until {@link
 * dispose}.
 */
export class ShardStore {
  readonly #rank: number;
  readonly #dtype: DType;
  readonly #blocks: HeldBlock[] = [];

  /** @param dtype - of the computation */
  constructor(rank: number, dtype: DType) {
    this.#rank = rank;
    this.#dtype = dtype;
  }

  /** @returns a zeroed flat buffer for the gathered parameters of `layout`, kept until disposed */
  allocateFull({ numel, written, constant }: FlatBlock): Tensor {
    // An average of many steps that were rounded to low precision would stand still; constants are words.
    const dtype = written || constant ? "float32" : this.#dtype;
    return tagMemory("parameters", () => hold(() => emptyShared([numel], { dtype }).zero_()));
  }

  /**
   * Makes paged parameters, whose memory is given up at first.
   * @returns `memory`: all of it, of `emptyPaged`; the caller's too
   */
  allocatePaged(layout: FlatBlock): { readonly full: Tensor; readonly memory: Tensor } {
    const memory = tagMemory("parameters", () => hold(() => emptyPaged(layout.numel, this.#dtype)));
    vacate(memory);
    return { memory, full: hold(() => memory.narrow(0, 0, layout.numel)) };
  }

  /**
   * Adds a block, in index order.
   * @param full - gathered parameters in the compute dtype; ownership passes
   * @param gathered - its ranges, if ranks do not share memory; ownership passes
   */
  add(layout: FlatBlock, full: Tensor, gathered?: Gathered): void {
    this.#blocks.push({ layout, full, gathered, gradient: undefined, squares: undefined });
  }

  /** @returns the gathered parameters of a block, in the compute dtype */
  full(block: number): Tensor {
    return this.#at(block).full;
  }

  /** @returns the ranges of a block's gathered parameters; undefined if the ranks share memory */
  gathered(block: number): Gathered | undefined {
    return this.#at(block).gathered;
  }

  /**
   * Sums the ranks' gradients in rank order, in float32: of the complete block if gradients are not split, else of the owned
   * range. The order makes every level, and accumulation in place of ranks, equal to the bit. The gradient of a rank alone is
   * its own sum, and stays in its dtype: every value of it is a float32 too.
   * @param key - names this sum in the group
   * @param gradient - this rank's, of the complete block, flat; ownership passes
   * @param group - the block's ranks
   */
  async reduce(block: number, key: string, gradient: Tensor, group: ProcessGroup): Promise<void> {
    const held = this.#at(block);
    const { layout } = held;
    if (group.size === 1) {
      held.gradient?.dispose();
      held.gradient = gradient;
      return;
    }
    const slices = layout.group.map((_, member) => sliceOf(layout, member));
    if (splittingOf(layout.zero).gradients)
      await group.reduceScatter(key, gradient, slices, () => {
        const sum = renewGradient(held, layout.sliceNumel);
        return { sum, squares: layout.counted ? renewSquares(held) : undefined };
      });
    else await group.allReduce(key, gradient, slices, () => renewGradient(held, layout.numel));
  }

  /**
   * @param parts - names of parameters with sums of their own
   * @returns the sums of squares of the reduced gradient over this rank's slice, float64, one a chunk of 1,024: of all of it,
   * then of each part alone
   */
  squareSums(block: number, parts: readonly ReadonlySet<string>[]): Tensor {
    return scope(() => {
      const gradient = this.#gradientOfSlice(block);
      const all = this.#at(block).squares?.alias() ?? ops.troupe.chunkSquareSums(gradient);
      if (parts.length === 0) return all;
      const ofParts = parts.map((names) => ops.troupe.chunkSquareSums(this.#only(block, gradient, names)));
      return ops.cat([all, ...ofParts]);
    });
  }

  /** A copy of a slice's gradient with all other parameters zero: sums of it are added in the same order. */
  #only(block: number, gradient: Tensor, names: ReadonlySet<string>): Tensor {
    const { layout } = this.#at(block);
    const range = sliceOf(layout, memberOf(layout, this.#rank));
    const only = gradient.clone();
    for (const { parameter, rangeBegin, numel } of piecesIn(layout, range))
      if (!names.has(parameter.name)) only.narrow(0, rangeBegin, numel).zero_();
    return only;
  }

  /** @returns the largest magnitude of the reduced gradient over this rank's slice; padding is zero */
  largestGradient(block: number): number {
    return scope(() => this.#gradientOfSlice(block).abs().max().item());
  }

  /** Clamps every element of the reduced gradient to [-limit, limit]. */
  clampGradient(block: number, limit: number): void {
    const held = this.#at(block);
    const gradient = reducedGradient(held);
    // The limit must not be rounded to the gradient's dtype.
    if (gradient.dtype !== "float32") {
      held.gradient = tagMemory("gradients", () => hold(() => gradient.to("float32")));
      gradient.dispose();
    }
    scope(() => reducedGradient(held).clamp_(-limit, limit));
  }

  /** @returns the reduced gradient of the owned range, float32; the caller's scope releases it */
  ownedGradient(block: number): Tensor {
    const held = this.#at(block);
    const gradient = reducedGradient(held);
    const { begin, end } = ownedRange(held.layout, this.#rank);
    const owned = gradient.numel === end - begin ? gradient.alias() : gradient.narrow(0, begin, end - begin);
    return owned.to("float32");
  }

  /** A view; the caller's scope releases it. */
  #gradientOfSlice(block: number): Tensor {
    const held = this.#at(block);
    const { begin, end } = sliceOf(held.layout, memberOf(held.layout, this.#rank));
    const gradient = reducedGradient(held);
    return gradient.narrow(0, splittingOf(held.layout.zero).gradients ? 0 : begin, end - begin);
  }

  /** Releases the reduced gradient. @returns that of the owned range, in its dtype; the caller's */
  takeGradient(block: number): Tensor {
    const held = this.#at(block);
    const gradient = reducedGradient(held);
    held.gradient = undefined;
    dropSquares(held);
    const { begin, end } = ownedRange(held.layout, this.#rank);
    if (gradient.numel === end - begin) return gradient;
    const owned = hold(() => gradient.narrow(0, begin, end - begin));
    gradient.dispose();
    return owned;
  }

  dropGradients(): void {
    for (const held of this.#blocks) {
      held.gradient?.dispose();
      held.gradient = undefined;
      dropSquares(held);
    }
  }

  dispose(): void {
    this.dropGradients();
    for (const { full, gathered } of this.#blocks.splice(0)) {
      full.dispose();
      gathered?.own.dispose();
      for (const slice of gathered?.others ?? []) slice?.dispose();
    }
  }

  #at(block: number): HeldBlock {
    const held = this.#blocks[block];
    if (held === undefined) throw new RangeError(`[shard] block ${block} of ${this.#blocks.length}`);
    return held;
  }
}

/** Memory for the next reduced gradient, in place of the last. */
function renewGradient(held: HeldBlock, numel: number): Tensor {
  held.gradient?.dispose();
  held.gradient = tagMemory("gradients", () => hold(() => empty([numel], { dtype: "float32" })));
  return held.gradient;
}

/** Memory for the sums of squares of the gradient's chunks, in place of the last. */
function renewSquares(held: HeldBlock): Tensor {
  dropSquares(held);
  const numChunks = reducedGradient(held).numel / SLICE_ALIGNMENT;
  held.squares = hold(() => empty([numChunks], { dtype: "float64" }));
  return held.squares;
}

function dropSquares(held: HeldBlock): void {
  held.squares?.dispose();
  held.squares = undefined;
}

function reducedGradient(held: HeldBlock): Tensor {
  if (held.gradient === undefined)
    throw new Error(`[shard] block ${held.layout.name} has no reduced gradient`);
  return held.gradient;
}
