import { initializeSlice, logicalRuns, streamOf } from "../nn/index.ts";
import type { OwnedStretch, StateLayout, UpdateRule, UpdateStep } from "../optim/index.ts";
import { hold, ops, scope, type Tensor } from "../tensor/index.ts";
import { type FlatBlock, type Piece, piecesIn, type Range } from "./flat-block.ts";
import { meanOfWrites } from "./mean-of-writes.ts";
import { dealRange, type OwnedPart, ownedRange, type RuleShare } from "./owned-range.ts";

/** One tensor of the state of an owned range: what a checkpoint keeps. float32, contiguous, flat. */
export interface StateTensor extends StateLayout<Piece> {
  /** {@link MASTER} for the parameters themselves, else what the optimizer calls it. */
  readonly kind: string;
  readonly tensor: Tensor;
}

/** The kind of the parameters' own values. */
export const MASTER = "master";

/**
 * What one rank's optimizers keep of one block's owned range, and their arithmetic on it. It knows what memory that
 * takes ({@link BlockState.layouts}) but not whose it is: whoever keeps the state binds tensors to it, for good or for
 * one update.
 */
export class BlockState {
  readonly layout: FlatBlock;
  /** Whose owned range it is. */
  readonly rank: number;
  /** What has to be kept, in the order in which {@link bind} takes it: the master where it is not the parameters, then the rest. */
  readonly layouts: readonly StateLayout<Piece>[];
  readonly #range: Range;
  readonly #rules: readonly UpdateRule[];
  readonly #shares: readonly RuleShare[];
  /** The owned range of the parameters that the ranks read. */
  readonly #owned: Tensor;
  readonly #isLowPrecision: boolean;
  #bound: readonly Tensor[] | undefined;

  /**
   * @param rules - at least one; the first takes what none of them names. Buffers have one of their own
   * @param owned - the owned range of the block's parameters, writable, in what the ranks compute in; ownership passes
   */
  constructor(layout: FlatBlock, rank: number, rules: readonly UpdateRule[], owned: Tensor) {
    this.layout = layout;
    this.rank = rank;
    this.#rules = rules;
    this.#range = ownedRange(layout, rank);
    this.#shares = sharesOf(layout, this.#range, rules);
    this.#owned = owned;
    this.#isLowPrecision = owned.dtype !== "float32";
    const master = { kind: MASTER, numel: owned.numel, pieces: this.pieces };
    this.layouts = [...(this.#isLowPrecision ? [master] : []), ...this.#parts.flatMap(({ state }) => state)];
  }

  get block(): number {
    return this.layout.index;
  }

  /** Whether it keeps masters of its own. Else the parameters that the ranks read are the masters: what is saved of them too. */
  get keepsMaster(): boolean {
    return this.#isLowPrecision;
  }

  /** The pieces of parameters in the owned range. */
  get pieces(): Piece[] {
    return piecesIn(this.layout, this.#range);
  }

  /**
   * Gives the state its memory: float32, flat, one tensor for each of {@link layouts}; ownership passes.
   */
  bind(tensors: readonly Tensor[]): void {
    this.#bound = tensors;
  }

  /** Takes the memory away: tensors are disposed, what they are views of stays. */
  unbind(): void {
    for (const tensor of this.#bound ?? []) tensor.dispose();
    this.#bound = undefined;
  }

  /** The state as a checkpoint keeps it, the master first; still this object's. To be bound. */
  get tensors(): StateTensor[] {
    const kept = this.layouts.map((layout, index) => ({ ...layout, tensor: this.#memory(index) }));
    if (this.#isLowPrecision) return kept;
    return [{ kind: MASTER, numel: this.#owned.numel, pieces: this.pieces, tensor: this.#owned }, ...kept];
  }

  /** The owned range as the optimizers update it: float32, flat; still this object's. To be bound where masters are kept. */
  get values(): Tensor {
    return this.#isLowPrecision ? this.#memory(0) : this.#owned;
  }

  /** @returns a step's learning rate for one parameter of the block */
  learningRateOf(name: string, { learningRates }: UpdateStep): number {
    const groups = this.#rules.flatMap((rule) => rule.groups);
    const group = groups.findIndex(({ names }) => names.includes(name));
    return learningRates[Math.max(group, 0)] ?? 0;
  }

  /** Draws the parameters' initial values: a function of (seed, parameter name, element), not of who owns what. */
  initialize(seed: number): void {
    scope(() => {
      for (const piece of this.pieces) {
        const slice = this.values.narrow(0, piece.rangeBegin, piece.numel);
        initializeSlice(slice, piece.parameter, seed, piece.parameterBegin);
      }
    });
    this.publish(0);
  }

  /**
   * Copies the master's values to where the ranks read them.
   * @param numUpdates - that the master has seen: where rounding is by chance, it is drawn as after the last of them
   */
  publish(numUpdates: number): void {
    if (!this.#isLowPrecision) return;
    scope(() => this.#owned.copy_(this.values));
    if (numUpdates > 0) for (const share of this.#shares) this.#roundByChance(share, numUpdates);
  }

  #roundByChance({ rule, stretches }: RuleShare, updateIndex: number): void {
    const { rounding } = rule;
    if (rounding === undefined || !this.#isLowPrecision) return;
    scope(() => {
      for (const { begin, pieces } of stretches) {
        for (const { parameter, parameterBegin, rangeBegin, numel } of pieces) {
          const stream = streamOf(`${parameter.name}@${updateIndex} rounded`);
          const first = begin - this.#range.begin + rangeBegin - parameterBegin;
          for (const run of logicalRuns(parameter.shape, parameter.split, parameterBegin, numel)) {
            const view = (tensor: Tensor) => tensor.narrow(0, first + run.begin, run.numel);
            const { seed } = rounding;
            ops.troupe.roundStochastic_(view(this.#owned), view(this.values), seed, stream, run.logicalBegin);
          }
        }
      }
    });
  }

  /**
   * One optimizer step. Yields what an optimizer wants of all ranks, see {@link UpdateRule}.
   * @param gradient - of the owned range, float32, summed; still the caller's
   * @param step - with a learning rate for each group of every rule
   */
  *update(gradient: Tensor, step: UpdateStep): Generator<Tensor, void, readonly Tensor[]> {
    let kept = this.#isLowPrecision ? 1 : 0;
    for (const [index, share] of this.#shares.entries()) {
      const { rule, firstGroup, parameters, stretches } = share;
      const learningRates = step.learningRates.slice(firstGroup, firstGroup + rule.groups.length);
      const gradientScale = step.ownScales?.[index] ?? step.gradientScale;
      const views = stretches.map((stretch) => {
        const first = kept;
        kept += stretch.state.length;
        return this.#viewsOf(stretch, gradient, first, rule.rounding === undefined);
      });
      try {
        yield* rule.update({ parameters, stretches: views }, { ...step, gradientScale, learningRates });
        this.#roundByChance(share, step.updateIndex);
      } finally {
        for (const { master, gradient: part, lowPrecision } of views)
          for (const view of [master, part, lowPrecision]) view?.dispose();
      }
    }
  }

  /** Releases every tensor. */
  dispose(): void {
    this.unbind();
    this.#owned.dispose();
  }

  get #parts(): OwnedPart[] {
    return this.#shares.flatMap(({ stretches }) => stretches);
  }

  #memory(index: number): Tensor {
    const tensor = this.#bound?.[index];
    if (tensor === undefined)
      throw new Error(`[shard] the state of block ${this.layout.name} is not at hand`);
    return tensor;
  }

  /** A stretch's memory, as views that are the caller's to dispose; the state, from number `first` on, is bound. */
  #viewsOf(stretch: OwnedPart, gradient: Tensor, first: number, narrows: boolean): OwnedStretch {
    const { begin, numel, pieces, pieceGroups, state } = stretch;
    const view = (tensor: Tensor) => hold(() => tensor.narrow(0, begin - this.#range.begin, numel));
    return {
      begin,
      numel,
      pieces,
      pieceGroups,
      master: view(this.values),
      gradient: view(gradient),
      lowPrecision: this.#isLowPrecision && narrows ? view(this.#owned) : undefined,
      state: Object.fromEntries(state.map(({ kind }, index) => [kind, this.#memory(first + index)])),
    };
  }
}

/**
 * @param rules - as {@link BlockState} takes them
 * @returns what a checkpoint keeps of a rank's share of a block, as {@link BlockState.tensors} gives it: the master first
 */
export function savedLayouts(
  layout: FlatBlock,
  rank: number,
  rules: readonly UpdateRule[],
): StateLayout<Piece>[] {
  const range = ownedRange(layout, rank);
  const master = { kind: MASTER, numel: range.end - range.begin, pieces: piecesIn(layout, range) };
  const shares = sharesOf(layout, range, rules);
  return [master, ...shares.flatMap(({ stretches }) => stretches.flatMap(({ state }) => state))];
}

function sharesOf(layout: FlatBlock, range: Range, rules: readonly UpdateRule[]): RuleShare[] {
  if (layout.written) return dealRange(layout, range, [meanOfWrites]);
  return layout.trainable ? dealRange(layout, range, rules) : [];
}
