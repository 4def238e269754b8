import { initializeSlice } from "../nn/index.ts";
import { type DType, empty, hold, ops, scope, type Tensor, tagMemory, zeros } from "../tensor/index.ts";
import { type FlatBlock, type Piece, piecesIn, type Range, sliceOf } from "./flat-block.ts";
import { splittingOf } from "./zero.ts";

/** AdamW as a shard needs it; an optimizer's specification is one. Plain data. */
export interface UpdateRule {
  readonly betas: readonly [number, number];
  readonly eps: number;
  /** Parameters that share a learning rate and a decay; the first group has what no group names. */
  readonly groups: readonly { readonly names: readonly string[]; readonly weightDecay: number }[];
}

/** What a shard's update of one step needs to know. */
export interface StepHyperparameters {
  /** Counts updates from 1: the exponent of AdamW's bias corrections. */
  readonly updateIndex: number;
  /** One learning rate a group of the optimizer. */
  readonly learningRates: readonly number[];
}

/** The state of one owned range of one block: what a checkpoint keeps. All float32, contiguous, of equal length. */
export interface BlockState {
  readonly master: Tensor;
  readonly expAvg: Tensor;
  readonly expAvgSq: Tensor;
}

/** Stretches of the owned range that share a learning rate and a decay. */
interface Segments {
  readonly ends: number[];
  readonly groups: number[];
  readonly weightDecays: number[];
}

interface OwnedBlock extends BlockState {
  readonly layout: FlatBlock;
  readonly range: Range;
  readonly segments: Segments;
  /** Whole parameters in the compute dtype; at level ≥ 1 all ranks of the process share these bytes. */
  readonly full: Tensor;
  /** The owned range of `full`, when its dtype is not float32. */
  readonly lowPrecision: Tensor | undefined;
  /** Reduced gradient of the step, float32; at level ≥ 2 only the owned range. */
  gradient: Tensor | undefined;
}

/**
 * One rank's share of every block: parameters, gradients and optimizer state, and the arithmetic on them.
 * It knows no messages; the shard actor decides when each method runs. All tensors live until {@link dispose}.
 */
export class ShardStore {
  readonly #rank: number;
  readonly #dtype: DType;
  readonly #optimizer: UpdateRule;
  readonly #blocks: OwnedBlock[] = [];

  /** @param dtype - what the ranks compute in; the owned ranges keep a float32 master when it is another */
  constructor(rank: number, dtype: DType, optimizer: UpdateRule) {
    this.#rank = rank;
    this.#dtype = dtype;
    this.#optimizer = optimizer;
  }

  /** @returns a zeroed flat buffer for the whole parameters of `layout`, kept until disposed */
  allocateFull(layout: FlatBlock): Tensor {
    return tagMemory("parameters", () => hold(() => zeros([layout.numel], { dtype: this.#dtype })));
  }

  /**
   * Adds a block, in index order; its owned range starts as zeros.
   * @param full - whole parameters in the compute dtype; ownership passes to the store
   * @param owned - the owned range of the same memory, writable; ownership passes to the store
   */
  add(layout: FlatBlock, full: Tensor, owned: Tensor): void {
    const range = ownedRange(layout, this.#rank);
    const numel = range.end - range.begin;
    const isMaster = this.#dtype === "float32";
    this.#blocks.push({
      layout,
      range,
      segments: segmentsOf(layout, range, this.#optimizer),
      full,
      lowPrecision: isMaster ? undefined : owned,
      master: isMaster ? owned : tagMemory("master", () => hold(() => zeros([numel], { dtype: "float32" }))),
      expAvg: tagMemory("optimizer", () => hold(() => zeros([numel], { dtype: "float32" }))),
      expAvgSq: tagMemory("optimizer", () => hold(() => zeros([numel], { dtype: "float32" }))),
      gradient: undefined,
    });
  }

  get numBlocks(): number {
    return this.#blocks.length;
  }

  /** @returns the whole parameters of a block, in the compute dtype */
  full(block: number): Tensor {
    return this.#at(block).full;
  }

  /** @returns the state of the owned range; views, still the store's */
  state(block: number): BlockState {
    return this.#at(block);
  }

  /** @returns the pieces of parameters in the owned range */
  pieces(block: number): Piece[] {
    const { layout, range } = this.#at(block);
    return piecesIn(layout, range);
  }

  /** Draws the owned range's initial values: a function of (seed, parameter name, element), not of who owns what. */
  initialize(block: number, seed: number): void {
    const { master } = this.#at(block);
    scope(() => {
      for (const piece of this.pieces(block)) {
        const slice = master.narrow(0, piece.rangeBegin, piece.numel);
        initializeSlice(slice, piece.parameter, seed, piece.parameterBegin);
      }
    });
    this.publish(block);
  }

  /** Copies the owned range's master values to where the ranks read them. */
  publish(block: number): void {
    const { lowPrecision, master } = this.#at(block);
    if (lowPrecision !== undefined) scope(() => lowPrecision.copy_(master));
  }

  /**
   * Sums the ranks' gradients in rank order, in float32: the whole block where gradients are not split, else the owned
   * range. The order makes every level, and accumulation in place of ranks, equal to the bit.
   * @param contributions - every rank's flat gradient, whole block, in rank order
   */
  reduce(block: number, contributions: readonly Tensor[]): void {
    const owned = this.#at(block);
    const range = splittingOf(owned.layout.zero).gradients
      ? owned.range
      : { begin: 0, end: owned.layout.numel };
    owned.gradient?.dispose();
    owned.gradient = tagMemory("gradients", () =>
      hold(() => empty([range.end - range.begin], { dtype: "float32" })),
    );
    ops.troupe.reduceRanks_(owned.gradient, contributions, range.begin, false);
  }

  /** @returns the sums of squares of the reduced gradient over this rank's slice, float64, one a chunk of 1,024 */
  squareSums(block: number): Tensor {
    const owned = this.#at(block);
    const gradient = reducedGradient(owned);
    if (splittingOf(owned.layout.zero).gradients) return ops.troupe.chunkSquareSums(gradient);
    const slice = sliceOf(owned.layout, this.#rank);
    return scope(() => ops.troupe.chunkSquareSums(gradient.narrow(0, slice.begin, slice.end - slice.begin)));
  }

  /**
   * One optimizer step on the owned range; gives the reduced gradient up.
   * @param gradientScale - what the summed gradient is multiplied by: 1 / (ranks × micro-batches), times the clip factor
   */
  update(block: number, step: StepHyperparameters, gradientScale: number): void {
    const owned = this.#at(block);
    const { betas, eps } = this.#optimizer;
    const learningRates = owned.segments.groups.map((group) => step.learningRates[group] as number);
    scope(() => {
      ops.troupe.adamw_(
        owned.master,
        owned.expAvg,
        owned.expAvgSq,
        ownedGradient(owned),
        owned.lowPrecision,
        owned.segments.ends,
        learningRates,
        owned.segments.weightDecays,
        betas[0],
        betas[1],
        eps,
        step.updateIndex,
        gradientScale,
      );
    });
    owned.gradient?.dispose();
    owned.gradient = undefined;
  }

  /** Forgets reduced gradients of a step that will not be taken. */
  dropGradients(): void {
    for (const owned of this.#blocks) {
      owned.gradient?.dispose();
      owned.gradient = undefined;
    }
  }

  /** Releases every tensor. */
  dispose(): void {
    this.dropGradients();
    for (const { full, lowPrecision, master, expAvg, expAvgSq } of this.#blocks.splice(0)) {
      for (const tensor of new Set([lowPrecision, master, expAvg, expAvgSq, full])) tensor?.dispose();
    }
  }

  #at(block: number): OwnedBlock {
    const owned = this.#blocks[block];
    if (owned === undefined) throw new RangeError(`[shard] block ${block} of ${this.#blocks.length}`);
    return owned;
  }
}

/** The elements of a block whose optimizer state `rank` keeps: its slice, or at level 0 all. */
export function ownedRange(layout: FlatBlock, rank: number): Range {
  return splittingOf(layout.zero).optimizer ? sliceOf(layout, rank) : { begin: 0, end: layout.numel };
}

function reducedGradient(owned: OwnedBlock): Tensor {
  if (owned.gradient === undefined)
    throw new Error(`[shard] block ${owned.layout.name} has no reduced gradient`);
  return owned.gradient;
}

function ownedGradient(owned: OwnedBlock): Tensor {
  const gradient = reducedGradient(owned);
  const numel = owned.range.end - owned.range.begin;
  return gradient.numel === numel ? gradient : gradient.narrow(0, owned.range.begin, numel);
}

function segmentsOf(layout: FlatBlock, range: Range, optimizer: UpdateRule): Segments {
  const groupOf = new Map(
    optimizer.groups.flatMap((group, index) => group.names.map((name) => [name, index] as const)),
  );
  const segments: Segments = { ends: [], groups: [], weightDecays: [] };
  for (const piece of piecesIn(layout, range)) {
    const group = groupOf.get(piece.parameter.name) ?? 0;
    segments.ends.push(piece.rangeBegin + piece.numel);
    segments.groups.push(group);
    segments.weightDecays.push(optimizer.groups[group]?.weightDecay ?? 0);
  }
  const numel = range.end - range.begin;
  if (segments.ends.length === 0) return { ends: [numel], groups: [0], weightDecays: [0] };
  // Padding behind the last piece goes with it: zeros stay zeros under AdamW.
  segments.ends[segments.ends.length - 1] = numel;
  return segments;
}
