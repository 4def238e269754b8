import { initializeSlice, logicalRuns, streamOf } from "../../nn/index.ts";
import {
  type DeviceScales,
  type OwnedStretch,
  type SavedProgress,
  type StateLayout,
  type UpdateRule,
  updatesOf,
} from "../../optim/index.ts";
import { hold, ops, overHost, scope, type Tensor } from "../../tensor/index.ts";
import { constantIn } from "../blocks/constant-words.ts";
import { type FlatBlock, type Piece, piecesIn, type Range } from "../blocks/flat-block.ts";
import { meanOfWrites } from "./mean-of-writes.ts";
import { dealRange, type OwnedPart, ownedRange, type RuleShare } from "./owned-range.ts";
import { type BlockStep, type Cohort, cohortsOf, type Run, updateIndexOf } from "./update-cohorts.ts";

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
  readonly #range: Range;
  readonly #rules: readonly UpdateRule[];
  readonly #shares: readonly RuleShare[];
  /** The owned range of the parameters that the ranks read. */
  readonly #owned: Tensor;
  /** Of each share, all that it updates where nothing was ever frozen. */
  readonly #together: readonly (readonly Cohort[])[];
  readonly #isLowPrecision: boolean;
  readonly #keepsMaster: boolean;
  #keepsState: boolean;
  #bound: readonly Tensor[] | undefined;

  /**
   * @param rules - at least one; the first takes what none of them names. Buffers have one of their own
   * @param owned - the owned range of the block's parameters, writable, in what the ranks compute in; ownership passes
   * @param isKept - whether the optimizers keep something of it from the beginning: see {@link keepsState}
   */
  constructor(
    layout: FlatBlock,
    rank: number,
    rules: readonly UpdateRule[],
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
    this.#keepsMaster = this.#isLowPrecision && !layout.base;
    this.#keepsState = isKept;
  }

  /** What has to be kept, in the order in which {@link bind} takes it: the master where it is not the parameters, then the rest. */
  get layouts(): readonly StateLayout<Piece>[] {
    const master = { kind: MASTER, numel: this.#owned.numel, pieces: this.pieces };
    const ofRules = this.#keepsState ? this.#parts.flatMap(({ state }) => state) : [];
    return [...(this.#keepsMaster ? [master] : []), ...ofRules];
  }

  /** Whether the optimizers keep something of it: where all was declared frozen, not before it is trained. */
  get keepsState(): boolean {
    return this.#keepsState;
  }

  /**
   * What was declared frozen is trained from now on: the optimizers begin to keep something of it. To be bound.
   * @param make - zeros for one of {@link layouts}; ownership passes
   */
  keepState(make: (layout: StateLayout<Piece>) => Tensor): void {
    if (this.#keepsState) return;
    const before = this.#bound ?? [];
    this.#keepsState = true;
    this.#bound = [...before, ...this.layouts.slice(before.length).map(make)];
  }

  get block(): number {
    return this.layout.index;
  }

  /** Whether it keeps masters of its own. Else the parameters that the ranks read are the masters: what is saved of them too. */
  get keepsMaster(): boolean {
    return this.#keepsMaster;
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
    if (this.#keepsMaster) return kept;
    return [{ kind: MASTER, numel: this.#owned.numel, pieces: this.pieces, tensor: this.#owned }, ...kept];
  }

  /**
   * The owned range as the optimizers update it, flat: float32, but of a base; still this object's. To be bound where masters are
   * kept.
   */
  get values(): Tensor {
    return this.#keepsMaster ? this.#memory(0) : this.#owned;
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
   * @param progress - what the master has seen: where rounding is by chance, it is drawn as after each parameter's last update
   */
  publish(progress: SavedProgress | undefined): void {
    if (!this.#keepsMaster) return;
    scope(() => this.#owned.copy_(this.values));
    for (const share of this.#shares) this.#roundByChance(share, (name) => updatesOf(progress, name));
  }

  /** @param lastUpdate - of a parameter by name, counted from 1; 0 leaves what is there */
  #roundByChance({ rule, stretches }: RuleShare, lastUpdate: (name: string) => number): void {
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
   * One optimizer step. Yields what an optimizer wants of all ranks, see {@link UpdateRule}. What it leaves out stays as it is
   * to the bit: values, what is kept, and how many updates it has seen.
   * @param gradient - of the owned range, float32, summed; still the caller's
   * @param step - with a learning rate for each group of every rule
   * @param scales - where a device knows what else the gradient is multiplied by, and all rules take that
   */
  *update(
    gradient: Tensor,
    step: BlockStep,
    scales?: DeviceScales,
  ): Generator<Tensor, void, readonly Tensor[]> {
    const frozen = new Set(step.frozen);
    const isUniform = frozen.size === 0 && Object.keys(step.frozenUpdates ?? {}).length === 0;
    let kept = this.#keepsMaster ? 1 : 0;
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
      this.#roundByChance(share, (name) => (frozen.has(name) ? 0 : updateIndexOf(step, name)));
      kept += stretches.reduce((sum, { state }) => sum + state.length, 0);
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

  /**
   * A run's memory, of which what is made for it is the caller's to dispose.
   * @param kept - the place of the share's first state among what is bound
   */
  #viewsOf(
    run: Run,
    { rule, stretches }: RuleShare,
    gradient: Tensor,
    kept: number,
  ): { readonly owned: OwnedStretch; readonly made: readonly Tensor[] } {
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
      const whole = this.#memory(first + kind);
      return [part.state[kind]?.kind ?? "", count === whole.numel ? whole : view(whole, from, count)];
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
 * @returns whether the optimizers keep something of a block from the beginning: of one that is declared frozen only where it
 *   was trained before
 */
export function keepsState(layout: FlatBlock, progress: SavedProgress | undefined): boolean {
  const wasTrained = ({ name }: { readonly name: string }) => updatesOf(progress, name) > 0;
  return layout.trainable || (!layout.constant && layout.parameters.some(wasTrained));
}

/**
 * @param rules - as {@link BlockState} takes them
 * @param isKept - whether the optimizers keep something of the block
 * @returns what a checkpoint keeps of a rank's share of a block, as {@link BlockState.tensors} gives it: the master first
 */
export function savedLayouts(
  layout: FlatBlock,
  rank: number,
  rules: readonly UpdateRule[],
  isKept = layout.trainable,
): StateLayout<Piece>[] {
  const range = ownedRange(layout, rank);
  const master = { kind: MASTER, numel: range.end - range.begin, pieces: piecesIn(layout, range) };
  const shares = isKept ? sharesOf(layout, range, rules) : [];
  return [master, ...shares.flatMap(({ stretches }) => stretches.flatMap(({ state }) => state))];
}

function sharesOf(layout: FlatBlock, range: Range, rules: readonly UpdateRule[]): RuleShare[] {
  return dealRange(layout, range, layout.written ? [meanOfWrites] : rules);
}
