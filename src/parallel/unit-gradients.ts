import type { DType, Tensor } from "../tensor/index.ts";
import type { FlatBlock } from "./flat-block.ts";
import { GradientBuckets } from "./gradient-buckets.ts";
import { type BlockPlan, type BlockUnit, ROOT_UNIT } from "./plan-blocks.ts";

/** Which gradients are the step's and no longer only a micro-batch's once a pass has been walked. */
export interface Completion {
  /** Those of the chunk's blocks. */
  readonly chunk: boolean;
  /** Those of the root. */
  readonly step: boolean;
}

/** Whether or not more passes of the step follow is said later, by {@link UnitGradients.flush}. */
export const MORE_MAY_COME: Completion = { chunk: false, step: false };

const NOTHING_MORE: Completion = { chunk: true, step: true };

/**
 * The gradients that a backward pass makes, unit by unit: sorted into flat blocks, and handed on as soon as they are
 * whole. Every unit of a pass is handed on, used or not: what ranks agree on never depends on what a batch touched.
 */
export class UnitGradients {
  readonly #plan: BlockPlan;
  readonly #buckets: GradientBuckets;
  readonly #handOn: (block: number, gradient: Tensor) => void;
  /** Units whose gradients of the pass that is walked are not whole yet, and what becomes of them then. */
  #pending = new Set<number>();
  #completion: Completion = NOTHING_MORE;
  #only: RegExp | undefined;

  /**
   * @param dtype - of the gradients that autograd makes
   * @param handOn - takes a flat block's whole gradient of the step; ownership passes
   */
  constructor(plan: BlockPlan, dtype: DType, handOn: (block: number, gradient: Tensor) => void) {
    this.#plan = plan;
    this.#buckets = new GradientBuckets(plan.layouts, dtype);
    this.#handOn = handOn;
  }

  /**
   * A pass over these units is walked backwards from now on.
   * @param only - names of the parameters whose gradients count; all unless told otherwise
   */
  begin(units: Iterable<number>, completion: Completion, only?: RegExp): void {
    this.#pending = new Set(units);
    this.#completion = completion;
    this.#only = only;
  }

  /** Adds to a unit's gradients, in the order of what is trained of it; `null` counts as zero. */
  contribute(unit: number, gradients: readonly (Tensor | null)[]): void {
    let begin = 0;
    for (const { index, parameters } of this.#trainedFlats(unit)) {
      const end = begin + parameters.length;
      const given = gradients.slice(begin, end);
      const only = this.#only;
      const counted = only && given.map((each, at) => (only.test(parameters[at]?.name ?? "") ? each : null));
      this.#buckets.contribute(index, counted ?? given);
      begin = end;
    }
  }

  /** Nothing more will be contributed to the unit in this pass. */
  whole(unit: number): void {
    this.#pending.delete(unit);
    const { chunk, step } = this.#completion;
    for (const { index } of this.#trainedFlats(unit)) {
      this.#buckets.endMicroBatch(index);
      if (unit === ROOT_UNIT ? step : chunk) this.#handOn(index, this.#buckets.take(index));
    }
  }

  /** The pass is over: what it did not use has zeros. */
  end(): void {
    for (const unit of this.#pending) {
      for (const { index, parameters } of this.#trainedFlats(unit)) {
        this.#buckets.contribute(
          index,
          parameters.map(() => null),
        );
      }
      this.whole(unit);
    }
  }

  /** No further pass of the step follows: what was collected of all units is handed on. */
  flush(): void {
    for (const unit of this.#plan.units.keys())
      for (const { index } of this.#trainedFlats(unit)) this.#handOn(index, this.#buckets.take(index));
  }

  /** Forgets everything of a pass that will not be finished. */
  clear(): void {
    this.#buckets.clear();
  }

  #trainedFlats(unit: number): FlatBlock[] {
    const { flats } = this.#plan.units[unit] as BlockUnit;
    return flats.map((flat) => this.#plan.layouts[flat] as FlatBlock).filter(({ trainable }) => trainable);
  }
}
