import { initializeSlice, logicalRuns, streamOf } from "../../nn/index.ts";
import * as optim from "../../optim/index.ts";
import { hold, ops, overHost, scope, type Tensor, tagMemory } from "../../tensor/index.ts";
import { constantIn } from "../blocks/constant-words.ts";
import { type FlatBlock, type Piece, piecesIn, type Range } from "../blocks/flat-block.ts";
import { meanOfWrites } from "./mean-of-writes.ts";
import { dealRange, type OwnedPart, ownedRange, type RuleShare } from "./owned-range.ts";
import { type BlockStep, type Cohort, cohortsOf, type Run, updateIndexOf } from "./update-cohorts.ts";

/** One tensor of the state of an owned range, as a checkpoint keeps it. float32, contiguous, flat. */
export interface StateTensor extends optim.StateLayout<Piece> {
  /** {@link MASTER} for the parameters themselves, else the optimizer's name for it. */
  readonly kind: string;
  readonly tensor: Tensor;
}

/** The kind of the parameters' own values. */
export const MASTER = "master";

/**
 * The state that one rank's optimizers keep of one block's owned range, and their arithmetic on it. It knows which memory that
 * takes ({@link BlockState.layouts}) but does not own it: a store binds tensors to it, for good or for one update.
 */
export class BlockState {
  readonly layout: FlatBlock;
  readonly rank: number;
  readonly #range: Range;
  readonly #rules: readonly optim.UpdateRule[];
  readonly #shares: readonly RuleShare[];
  /** The owned range of the parameters that the ranks read. */
  readonly #owned: Tensor;
  /** For each share, the cohort of all its parameters: used where nothing was ever frozen. */
  readonly #together: readonly (readonly Cohort[])[];
  readonly #isLowPrecision: boolean;
  /** Whether it keeps masters of its own. Else the parameters that the ranks read are the masters, and are saved. */
  readonly keepsMaster: boolean;
  #keepsState: boolean;
  #bound: readonly Tensor[] | undefined;

  /**
   * @param rules - at least one; the first takes the parameters that none of them names. Buffers have a rule of their own
   * @param owned - the owned range of the block's parameters, writable, in the dtype of the computation; ownership passes
   * @param isKept - whether the optimizers keep state from the beginning: see {@link keepsState}
   */
  constructor(
    layout: FlatBlock,
    rank: number,
    rules: readonly optim.UpdateRule[],
    owned: Tensor,
    isKept = layout.trainable,
  ) {
    this.layout = layout;
    this.rank = rank;
    this.#rules = rules;
    this.#range = ownedRange(layout, rank);
    this.#shares = sharesOf(layout, this.#range, rules);
    this.#together = this.#shares.map((share) => cohortsOf(share, NOTHING_FROZEN));
    this.#owned = owned;
    this.#isLowPrecision = owned.dtype !== "float32";
    this.keepsMaster = this.#isLowPrecision && !layout.base;
    this.#keepsState = isKept;
  }

  /** The tensors to keep, in the order of {@link bind}: the master, unless the parameters are the master, then the rest. */
  get layouts(): readonly optim.StateLayout<Piece>[] {
    const master = { kind: MASTER, numel: this.#owned.numel, pieces: this.pieces };
    const ofRules = this.#keepsState ? this.#parts.flatMap(({ state }) => state) : [];
    return [...(this.keepsMaster ? [master] : []), ...ofRules];
  }

  /** Whether the optimizers keep state: a block that was declared frozen has none before it is trained. */
  get keepsState(): boolean {
    return this.#keepsState;
  }

  /**
   * Begins the state of a block that was declared frozen and is now trained. Call it bound.
   * @param make - zeros for one of {@link layouts}; ownership passes
   */
  keepState(make: (layout: optim.StateLayout<Piece>) => Tensor): void {
    if (this.#keepsState) return;
    const before = this.#bound ?? [];
    this.#keepsState = true;
    this.#bound = [...before, ...this.layouts.slice(before.length).map(make)];
  }

  get block(): number {
    return this.layout.index;
  }

  get pieces(): Piece[] {
    return piecesIn(this.layout, this.#range);
  }

  /** Gives the state its memory: float32, flat, one tensor for each of {@link layouts}; ownership passes. */
  bind(tensors: readonly Tensor[]): void {
    this.#bound = tensors;
  }

  /** Takes the memory away: disposes the tensors; the memory under views stays. */
  unbind(): void {
    for (const tensor of this.#bound ?? []) tensor.dispose();
    this.#bound = undefined;
  }

  /** The state as a checkpoint keeps it, the master first; still this object's. Call it bound. */
  get tensors(): StateTensor[] {
    const kept = this.layouts.map((layout, index) => ({ ...layout, tensor: this.#memory(index) }));
    if (this.keepsMaster) return kept;
    return [{ kind: MASTER, numel: this.#owned.numel, pieces: this.pieces, tensor: this.#owned }, ...kept];
  }

  /**
   * The owned range as the optimizers update it, flat: float32, except for a base; still this object's. If masters are kept,
   * call it bound.
   */
  get values(): Tensor {
    return this.keepsMaster ? this.#memory(0) : this.#owned;
  }

  /** @returns a step's learning rate for one parameter of the block */
  learningRateOf(name: string, { learningRates }: BlockStep): number {
    const groups = this.#rules.flatMap((rule) => rule.groups);
    const group = groups.findIndex(({ names }) => names.includes(name));
    return learningRates[Math.max(group, 0)] ?? 0;
  }

  /** Draws the parameters' initial values: a function of (seed, parameter name, element), not of who owns what. */
  initialize(seed: number): void {
    scope(() => {
      for (const piece of this.pieces) {
        const own = this.values.narrow(0, piece.rangeBegin, piece.numel);
        const slice = this.layout.constant ? constantIn(own, piece.parameter) : own;
        overHost(slice, (host) => initializeSlice(host, piece.parameter, seed, piece.parameterBegin));
      }
    });
    this.publish(undefined);
  }

  /**
   * Copies the master's values to where the ranks read them.
   * @param progress - of the master: stochastic rounding is drawn as after each parameter's last update
   */
  publish(progress: optim.SavedProgress | undefined): void {
    if (!this.keepsMaster) return;
    scope(() => this.#owned.copy_(this.values));
    for (const share of this.#shares)
      this.#roundStochastically(share, (name) => optim.updatesOf(progress, name));
  }

  /** @param lastUpdate - of a parameter by name, counted from 1; 0 leaves the present value */
  #roundStochastically({ rule, stretches }: RuleShare, lastUpdate: (name: string) => number): void {
    const { rounding } = rule;
    if (rounding === undefined || !this.#isLowPrecision) return;
    scope(() => {
      for (const { begin, pieces } of stretches) {
        for (const { parameter, parameterBegin, rangeBegin, numel } of pieces) {
          const updateIndex = lastUpdate(parameter.name);
          if (updateIndex === 0) continue;
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
   * Makes one optimizer step. Yields the values that an optimizer exchanges with all ranks, see {@link UpdateRule}. Frozen
   * parameters stay as they are to the bit: values, state and number of updates.
   * @param gradient - of the owned range, summed, in any float dtype; still the caller's
   * @param step - with a learning rate for each group of every rule
   * @param scales - further factors of the gradient that a device knows, if all rules take them
   */
  *update(
    gradient: Tensor,
    step: BlockStep,
    scales?: optim.DeviceScales,
  ): Generator<Tensor, void, readonly Tensor[]> {
    if (this.#rules.every(({ takesScale }) => takesScale)) return yield* this.#apply(gradient, step, scales);
    const wide = tagMemory("gradients", () => hold(() => gradient.to("float32")));
    try {
      yield* this.#apply(wide, step, scales);
    } finally {
      wide.dispose();
    }
  }

  *#apply(
    gradient: Tensor,
    step: BlockStep,
    scales: optim.DeviceScales | undefined,
  ): Generator<Tensor, void, readonly Tensor[]> {
    const frozen = new Set(step.frozen);
    const isUniform = frozen.size === 0 && Object.keys(step.frozenUpdates ?? {}).length === 0;
    let kept = this.keepsMaster ? 1 : 0;
    for (const [index, share] of this.#shares.entries()) {
      const { rule, firstGroup, stretches } = share;
      const learningRates = step.learningRates.slice(firstGroup, firstGroup + rule.groups.length);
      const gradientScale = step.ownScales?.[index] ?? step.gradientScale;
      const scale = scales?.own[index] ?? scales?.all;
      const cohorts = isUniform ? (this.#together[index] ?? []) : cohortsOf(share, step);
      for (const { updateIndex: ofOwn, parameters, runs } of cohorts) {
        const updateIndex = isUniform ? step.updateIndex : ofOwn;
        const views = runs.map((run) => this.#viewsOf(run, share, gradient, kept));
        try {
          const ofCohort = { ...step, updateIndex, gradientScale, learningRates, scale };
          yield* rule.update({ parameters, stretches: views.map(({ owned }) => owned) }, ofCohort);
        } finally {
          for (const { made } of views) for (const view of made) view.dispose();
        }
      }
      this.#roundStochastically(share, (name) => (frozen.has(name) ? 0 : updateIndexOf(step, name)));
      kept += stretches.reduce((sum, { state }) => sum + state.length, 0);
    }
  }

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

  /**
   * Views of a run's memory; those made here are the caller's to dispose.
   * @param kept - the index of the share's first state in the bound tensors
   */
  #viewsOf(
    run: Run,
    { rule, stretches }: RuleShare,
    gradient: Tensor,
    kept: number,
  ): { readonly owned: optim.OwnedStretch; readonly made: readonly Tensor[] } {
    const { stretch, begin, numel, pieces, pieceGroups } = run;
    const part = stretches[stretch] as OwnedPart;
    const made: Tensor[] = [];
    const view = (tensor: Tensor, from: number, count: number) => {
      const one = hold(() => tensor.narrow(0, from, count));
      made.push(one);
      return one;
    };
    const ofRange = (tensor: Tensor) => view(tensor, part.begin - this.#range.begin + begin, numel);
    const first = stretches.slice(0, stretch).reduce((sum, { state }) => sum + state.length, kept);
    const state = run.state.map(({ kind, begin: from, numel: count }): [string, Tensor] => {
      const complete = this.#memory(first + kind);
      return [
        part.state[kind]?.kind ?? "",
        count === complete.numel ? complete : view(complete, from, count),
      ];
    });
    const owned = {
      begin: part.begin + begin,
      numel,
      pieces,
      pieceGroups,
      master: ofRange(this.values),
      gradient: ofRange(gradient),
      lowPrecision: this.#isLowPrecision && rule.rounding === undefined ? ofRange(this.#owned) : undefined,
      state: Object.fromEntries(state),
    };
    return { owned, made };
  }
}

const NOTHING_FROZEN: BlockStep = { updateIndex: 0, learningRates: [], gradientScale: 1 };

/**
 * @param progress - of the run's beginning; undefined for one without updates
 * @returns whether the optimizers keep state of a block from the beginning: for one that is declared frozen, only if it was
 * trained before
 */
export function keepsState(layout: FlatBlock, progress: optim.SavedProgress | undefined): boolean {
  const wasTrained = ({ name }: { readonly name: string }) => optim.updatesOf(progress, name) > 0;
  return layout.trainable || (!layout.constant && layout.parameters.some(wasTrained));
}

/**
 * @param rules - as {@link BlockState} takes them
 * @param isKept - whether the optimizers keep state of the block
 * @returns the layouts of a rank's share of a block in a checkpoint, as {@link BlockState.tensors} gives it: the master first
 */
export function savedLayouts(
  layout: FlatBlock,
  rank: number,
  rules: readonly optim.UpdateRule[],
  isKept: boolean,
): optim.StateLayout<Piece>[] {
  const range = ownedRange(layout, rank);
  const master = { kind: MASTER, numel: range.end - range.begin, pieces: piecesIn(layout, range) };
  const shares = isKept ? sharesOf(layout, range, rules) : [];
  return [master, ...shares.flatMap(({ stretches }) => stretches.flatMap(({ state }) => state))];
}

function sharesOf(layout: FlatBlock, range: Range, rules: readonly optim.UpdateRule[]): RuleShare[] {
  return dealRange(layout, range, layout.written ? [meanOfWrites] : rules);
}
