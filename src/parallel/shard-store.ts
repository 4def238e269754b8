import { initializeSlice } from "../nn/index.ts";
import type { OwnedStretch, Stretch, UpdateRule, UpdateStep } from "../optim/index.ts";
import { type DType, empty, hold, ops, scope, type Tensor, tagMemory, zeros } from "../tensor/index.ts";
import { type FlatBlock, type Piece, piecesIn, type Range, sliceOf } from "./flat-block.ts";
import { splittingOf } from "./zero.ts";

/** One tensor of the state of an owned range: what a checkpoint keeps. float32, contiguous, flat. */
export interface StateTensor {
  /** "master" for the parameters themselves, else what the optimizer calls it. */
  readonly kind: string;
  readonly tensor: Tensor;
  /** What lies where in it; a piece's parameter has the shape that the state has in a checkpoint. */
  readonly pieces: readonly Piece[];
}

/** The kind of the parameters' own values. */
export const MASTER = "master";

/** The stretches of one block that one optimizer updates. */
interface RuleShare {
  readonly rule: UpdateRule;
  /** Where the rule's groups begin among those of all rules. */
  readonly firstGroup: number;
  readonly stretches: readonly OwnedPart[];
}

interface OwnedPart extends Stretch<Piece> {
  readonly pieceGroups: readonly number[];
  readonly state: readonly StateTensor[];
}

interface OwnedBlock {
  readonly layout: FlatBlock;
  readonly range: Range;
  readonly shares: readonly RuleShare[];
  /** Whole parameters in the compute dtype; at level ≥ 1 all ranks of the process share these bytes. */
  readonly full: Tensor;
  /** The owned range of `full`, when its dtype is not float32. */
  readonly lowPrecision: Tensor | undefined;
  readonly master: Tensor;
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
  readonly #rules: readonly UpdateRule[];
  readonly #blocks: OwnedBlock[] = [];

  /**
   * @param dtype - what the ranks compute in; the owned ranges keep a float32 master when it is another
   * @param rules - at least one; the first takes what none of them names
   */
  constructor(rank: number, dtype: DType, rules: readonly UpdateRule[]) {
    this.#rank = rank;
    this.#dtype = dtype;
    this.#rules = rules;
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
      shares: dealRange(layout, range, this.#rules),
      full,
      lowPrecision: isMaster ? undefined : owned,
      master: isMaster ? owned : tagMemory("master", () => hold(() => zeros([numel], { dtype: "float32" }))),
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

  /** @returns the state of the owned range, the master first; still the store's */
  state(block: number): StateTensor[] {
    const { master, shares } = this.#at(block);
    const kept = shares.flatMap(({ stretches }) => stretches.flatMap(({ state }) => state));
    return [{ kind: MASTER, tensor: master, pieces: this.pieces(block) }, ...kept];
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
   * One optimizer step on the owned range; gives the reduced gradient up. Yields what an optimizer wants of all ranks,
   * see {@link UpdateRule}.
   * @param step - with a learning rate for each group of every rule
   */
  *update(block: number, step: UpdateStep): Generator<Tensor, void, readonly Tensor[]> {
    const owned = this.#at(block);
    for (const { rule, firstGroup, stretches } of owned.shares) {
      const learningRates = step.learningRates.slice(firstGroup, firstGroup + rule.groups.length);
      const views = stretches.map((stretch) => viewsOf(owned, stretch));
      try {
        yield* rule.update(views, { ...step, learningRates });
      } finally {
        for (const { master, gradient, lowPrecision } of views)
          for (const view of [master, gradient, lowPrecision]) view?.dispose();
      }
    }
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
    const states = this.#blocks.map((_, block) => this.state(block).map(({ tensor }) => tensor));
    this.#blocks.splice(0).forEach(({ full, lowPrecision }, block) => {
      for (const tensor of new Set([lowPrecision, full, ...(states[block] ?? [])])) tensor?.dispose();
    });
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

/** A stretch's memory, as views into the block's that are the caller's to dispose; the state is the store's. */
function viewsOf(owned: OwnedBlock, stretch: OwnedPart): OwnedStretch {
  const { begin, numel, pieces, pieceGroups, state } = stretch;
  const offset = begin - owned.range.begin;
  const gradient = reducedGradient(owned);
  const low = owned.lowPrecision;
  const isWhole = gradient.numel !== owned.range.end - owned.range.begin;
  return {
    begin,
    numel,
    pieces,
    pieceGroups,
    master: hold(() => owned.master.narrow(0, offset, numel)),
    gradient: hold(() => gradient.narrow(0, isWhole ? begin : offset, numel)),
    lowPrecision: low && hold(() => low.narrow(0, offset, numel)),
    state: Object.fromEntries(state.map(({ kind, tensor }) => [kind, tensor])),
  };
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
  const state = rule.stateOf(stretch).map(({ kind, numel, pieces: kept }) => ({
    kind,
    pieces: kept,
    tensor: tagMemory("optimizer", () => hold(() => zeros([numel], { dtype: "float32" }))),
  }));
  return { ...stretch, pieceGroups: run.groups, state };
}
