import { initializeSlice, logicalRuns, streamOf } from "../nn/index.ts";
import type { OwnedStretch, StateLayout, Stretch, UpdateRule, UpdateStep } from "../optim/index.ts";
import { hold, ops, scope, type Tensor } from "../tensor/index.ts";
import {
  type FlatBlock,
  type FlatParameter,
  memberOf,
  type Piece,
  piecesIn,
  type Range,
  sliceOf,
} from "./flat-block.ts";
import { splittingOf } from "./zero.ts";

/** One tensor of the state of an owned range: what a checkpoint keeps. float32, contiguous, flat. */
export interface StateTensor extends StateLayout<Piece> {
  /** {@link MASTER} for the parameters themselves, else what the optimizer calls it. */
  readonly kind: string;
  readonly tensor: Tensor;
}

/** The kind of the parameters' own values. */
export const MASTER = "master";

/** The stretches of one block that one optimizer updates. */
interface RuleShare {
  readonly rule: UpdateRule;
  /** Where the rule's groups begin among those of all rules. */
  readonly firstGroup: number;
  /** Every parameter of the block that the rule names. */
  readonly parameters: readonly FlatParameter[];
  readonly stretches: readonly OwnedPart[];
}

interface OwnedPart extends Stretch<Piece> {
  readonly pieceGroups: readonly number[];
  readonly state: readonly StateLayout<Piece>[];
}

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
  readonly #isNarrow: boolean;
  #bound: readonly Tensor[] | undefined;

  /**
   * @param rules - at least one; the first takes what none of them names
   * @param owned - the owned range of the block's parameters, writable, in what the ranks compute in; ownership passes
   */
  constructor(layout: FlatBlock, rank: number, rules: readonly UpdateRule[], owned: Tensor) {
    this.layout = layout;
    this.rank = rank;
    this.#rules = rules;
    this.#range = ownedRange(layout, rank);
    this.#shares = layout.trainable ? dealRange(layout, this.#range, rules) : [];
    this.#owned = owned;
    this.#isNarrow = owned.dtype !== "float32";
    const master = { kind: MASTER, numel: owned.numel, pieces: this.pieces };
    this.layouts = [...(this.#isNarrow ? [master] : []), ...this.#parts.flatMap(({ state }) => state)];
  }

  get block(): number {
    return this.layout.index;
  }

  /** Whether it keeps masters of its own. Else the parameters that the ranks read are the masters: what is saved of them too. */
  get keepsMaster(): boolean {
    return this.#isNarrow;
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
    if (this.#isNarrow) return kept;
    return [{ kind: MASTER, numel: this.#owned.numel, pieces: this.pieces, tensor: this.#owned }, ...kept];
  }

  /** The owned range as the optimizers update it: float32, flat; still this object's. To be bound where masters are kept. */
  get values(): Tensor {
    return this.#isNarrow ? this.#memory(0) : this.#owned;
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
    if (!this.#isNarrow) return;
    scope(() => this.#owned.copy_(this.values));
    if (numUpdates > 0) for (const share of this.#shares) this.#roundByChance(share, numUpdates);
  }

  #roundByChance({ rule, stretches }: RuleShare, updateIndex: number): void {
    const { rounding } = rule;
    if (rounding === undefined || !this.#isNarrow) return;
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
    let kept = this.#isNarrow ? 1 : 0;
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
      lowPrecision: this.#isNarrow && narrows ? view(this.#owned) : undefined,
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
  const shares = layout.trainable ? dealRange(layout, range, rules) : [];
  return [master, ...shares.flatMap(({ stretches }) => stretches.flatMap(({ state }) => state))];
}

/** The elements of a block whose optimizer state `rank` keeps: its slice, or at level 0 all. */
export function ownedRange(layout: FlatBlock, rank: number): Range {
  if (!splittingOf(layout.zero).optimizer) return { begin: 0, end: layout.numel };
  return sliceOf(layout, memberOf(layout, rank));
}

/** Deals the parameters in a range to the rules that name them, stretch by stretch. */
function dealRange(layout: FlatBlock, range: Range, rules: readonly UpdateRule[]): RuleShare[] {
  const places = new Map<string, { readonly rule: number; readonly group: number }>();
  rules.forEach(({ groups }, rule) => {
    groups.forEach(({ names }, group) => {
      for (const name of names) places.set(name, { rule, group });
    });
  });
  const runs: { rule: number; begin: number; end: number; pieces: Piece[]; groups: number[] }[] = [];
  for (const piece of piecesIn(layout, range)) {
    const { rule, group } = places.get(piece.parameter.name) ?? { rule: 0, group: 0 };
    const last = runs.at(-1);
    const run = last?.rule === rule ? last : { rule, begin: 0, end: 0, pieces: [], groups: [] };
    if (run !== last) {
      // Padding goes with the parameters before it: zeros stay zeros under every rule.
      run.begin = last === undefined ? 0 : piece.rangeBegin;
      if (last !== undefined) last.end = run.begin;
      runs.push(run);
    }
    run.end = range.end - range.begin;
    run.pieces.push(piece);
    run.groups.push(group);
  }
  let firstGroup = 0;
  return rules.map((rule, index) => {
    const share = {
      rule,
      firstGroup,
      parameters: layout.parameters.filter(({ name }) => (places.get(name)?.rule ?? 0) === index),
      stretches: runs.filter((run) => run.rule === index).map((run) => stretchOf(range, run, rule)),
    };
    firstGroup += rule.groups.length;
    return share;
  });
}

function stretchOf(
  range: Range,
  run: { begin: number; end: number; pieces: Piece[]; groups: number[] },
  rule: UpdateRule,
): OwnedPart {
  const pieces = run.pieces.map((piece) => ({ ...piece, rangeBegin: piece.rangeBegin - run.begin }));
  const stretch = { begin: range.begin + run.begin, numel: run.end - run.begin, pieces };
  return { ...stretch, pieceGroups: run.groups, state: rule.stateOf(stretch) };
}
