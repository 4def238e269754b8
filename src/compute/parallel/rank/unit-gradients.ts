import type { Parameter } from "../../nn/index.ts";
import { matchesName } from "../../optim/index.ts";
import type { DType, GradientPlace, Tensor } from "../../tensor/index.ts";
import type { FlatBlock, FlatParameter } from "../blocks/flat-block.ts";
import { type BlockPlan, type BlockUnit, ROOT_UNIT } from "../blocks/plan-blocks.ts";
import type { LeafPlace } from "./bound-parameters.ts";
import { GradientBuckets } from "./gradient-buckets.ts";

/** Says which gradients of the step are complete once a pass has been walked. */
export interface Completion {
  /** Whether gradients of the chunk's own blocks are. */
  readonly chunk: boolean;
  /** Whether gradients of the root are, and of blocks that several chunks call. */
  readonly step: boolean;
}

/** More passes of the step may follow: {@link UnitGradients.flush} ends it. */
export const MORE_MAY_COME: Completion = { chunk: false, step: false };

const NOTHING_MORE: Completion = { chunk: true, step: true };

/**
 * The gradients that a backward pass makes, unit by unit: sorted into flat blocks, and handed on as soon as they are complete.
 * Every unit of a pass is handed on, used or not: the ranks' exchange never depends on a batch's content. Flat blocks of which
 * a step trains nothing are left out.
 */
export class UnitGradients {
  readonly #plan: BlockPlan;
  readonly #buckets: GradientBuckets;
  /** Whether replays write products where gradients are collected: those of bfloat16 matrices. */
  readonly #placesProducts: boolean;
  readonly #parameters: readonly Parameter[];
  /** The parameters of each flat block; buffers have none. */
  readonly #byFlat: ReadonlyMap<number, readonly Parameter[]>;
  readonly #handOn: (block: number, gradient: Tensor) => void;
  /** Units whose gradients are incomplete in the pass that is walked, and the completion that follows. */
  #pending = new Set<number>();
  #completion: Completion = NOTHING_MORE;
  #only: RegExp | undefined;
  /** The parameters that the step trains: those that were trainable in a backward of one of its losses. */
  #trained = new Set<Parameter>();
  #isSettled = false;
  /** Parameters that a loss has a gradient of, up to {@link takeReached}. */
  #reached: Set<Parameter> | undefined = new Set();

  /**
   * @param options.dtype - of the gradients that autograd makes
   * @param options.adds - whether products may be added to the step's gradients unrounded
   * @param handOn - takes a flat block's complete gradient of the step; ownership passes
   */
  constructor(
    plan: BlockPlan,
    options: { readonly dtype: DType; readonly adds: boolean },
    handOn: (block: number, gradient: Tensor) => void,
  ) {
    this.#plan = plan;
    this.#buckets = new GradientBuckets(plan.layouts, options.dtype, options.adds);
    this.#placesProducts = options.dtype === "bfloat16";
    this.#byFlat = parametersOf(plan);
    this.#parameters = [...[...this.#byFlat.values()].flat(), ...plan.absent];
    this.#handOn = handOn;
  }

  /**
   * Begins the backward of a pass over these units.
   * @param only - names of the parameters whose gradients count; default all
   */
  begin(units: Iterable<number>, completion: Completion, only?: RegExp): void {
    this.#pending = new Set(units);
    this.#completion = completion;
    this.#only = only;
  }

  beginStep(): void {
    this.#trained = new Set();
    this.#isSettled = false;
  }

  /** Adds the parameters that are trainable now to those of the step, unless they are {@link settle}d. */
  note(): void {
    if (this.#isSettled) return;
    for (const parameter of this.#parameters) if (parameter.trainable) this.#trained.add(parameter);
  }

  /** @returns all parameters that the step trains; no more are added */
  settle(): ReadonlySet<Parameter> {
    this.#isSettled = true;
    return this.#trained;
  }

  /**
   * @returns the parameters with gradients in the losses so far; undefined from the second call on: collection ends with the
   * first
   */
  takeReached(): ReadonlySet<Parameter> | undefined {
    const reached = this.#reached;
    this.#reached = undefined;
    return reached;
  }

  /** Adds gradients of leaves; `null` counts as zero. @param placeOf - gives the destination of a leaf's gradient */
  contribute(
    leaves: readonly Tensor[],
    gradients: readonly (Tensor | null)[],
    placeOf: (leaf: Tensor) => LeafPlace | undefined,
  ): void {
    const byFlat = new Map<number, (Tensor | null)[]>();
    leaves.forEach((leaf, index) => {
      const { flat, parameter } = placeOf(leaf) as LeafPlace;
      if (!this.#isTrained(flat)) return;
      const { parameters } = this.#plan.layouts[flat] as FlatBlock;
      const given = byFlat.get(flat) ?? parameters.map(() => null);
      byFlat.set(flat, given);
      const { name } = parameters[parameter] as FlatParameter;
      if (this.#only !== undefined && !matchesName(this.#only, name)) return;
      given[parameter] = gradients[index] ?? null;
      if (given[parameter] !== null) this.#reached?.add(this.#byFlat.get(flat)?.[parameter] as Parameter);
    });
    for (const [flat, given] of byFlat) this.#buckets.contribute(flat, given);
  }

  /**
   * @param isLast - whether the pass has no more gradients of their unit
   * @returns where the first gradients of a pass may be computed, by the index of their leaf
   */
  placesOf(
    leaves: readonly Tensor[],
    placeOf: (leaf: Tensor) => LeafPlace | undefined,
    isLast: boolean,
  ): GradientPlace[] {
    // Gradients that do not count must not come in.
    if (!this.#placesProducts || this.#only !== undefined) return [];
    return leaves.flatMap((leaf, gradient) => {
      const { flat: block, parameter } = placeOf(leaf) as LeafPlace;
      const flat = this.#isTrained(block) ? this.#buckets.open(block, isLast) : undefined;
      const begin = this.#plan.layouts[block]?.parameters[parameter]?.offset;
      return flat === undefined || begin === undefined ? [] : [{ gradient, flat, begin }];
    });
  }

  /** Completes a unit: nothing more is contributed to it in this pass. */
  complete(unit: number): void {
    this.#pending.delete(unit);
    const { chunk, step } = this.#completion;
    for (const { index } of this.#trainedFlats(unit)) {
      this.#buckets.endMicroBatch(index);
      if (this.#isOfOneChunk(unit) ? chunk : step) this.#handOn(index, this.#buckets.take(index));
    }
  }

  /** Ends the pass: unused units get zeros. */
  end(): void {
    for (const unit of this.#pending) {
      for (const { index, parameters } of this.#trainedFlats(unit))
        this.#buckets.contribute(
          index,
          parameters.map(() => null),
        );
      this.complete(unit);
    }
  }

  /** Ends the step's passes: hands on the gradients of all units. */
  flush(): void {
    for (const unit of this.#plan.units.keys())
      for (const { index } of this.#trainedFlats(unit)) this.#handOn(index, this.#buckets.take(index));
  }

  clear(): void {
    this.#buckets.clear();
  }

  #isOfOneChunk(unit: number): boolean {
    const { chunkUnits } = this.#plan;
    return unit !== ROOT_UNIT && chunkUnits.filter((units) => units.has(unit)).length === 1;
  }

  #trainedFlats(unit: number): FlatBlock[] {
    const { flats } = this.#plan.units[unit] as BlockUnit;
    return flats.filter((flat) => this.#isTrained(flat)).map((flat) => this.#plan.layouts[flat] as FlatBlock);
  }

  #isTrained(flat: number): boolean {
    return this.#byFlat.get(flat)?.some((parameter) => this.#trained.has(parameter)) === true;
  }
}

function parametersOf({ units, layouts }: BlockPlan): Map<number, readonly Parameter[]> {
  const byFlat = new Map<number, readonly Parameter[]>();
  for (const { flats, parameters } of units) {
    const rest = [...parameters];
    for (const flat of flats) {
      const layout = layouts[flat] as FlatBlock;
      const own = rest.splice(0, layout.parameters.length);
      if (!layout.written && !layout.constant) byFlat.set(flat, own);
    }
  }
  return byFlat;
}
