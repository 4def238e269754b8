import { ModuleBuffer } from "../../nn/index.ts";
import { emptyShared, hold, scope, type Tensor, tagMemory } from "../../tensor/index.ts";
import { COUNT_NUMEL, type FlatBlock, type FlatParameter } from "../blocks/flat-block.ts";
import type { BlockPlan } from "../blocks/plan-blocks.ts";

/** A value that a forward gives a buffer. */
interface Write {
  readonly layout: FlatBlock;
  readonly place: FlatParameter;
  readonly value: Tensor;
}

/**
 * The writes of one step's forwards to a rank's buffers: the sum of all writes and behind it their number, laid out like the
 * block. Handed on like gradients, once a step, even without writes: the ranks' exchange never depends on a batch's content.
 */
export class BufferWrites {
  readonly #plan: BlockPlan;
  readonly #layouts: readonly FlatBlock[];
  readonly #handOn: (block: number, writes: Tensor) => void;
  readonly #sums = new Map<number, Tensor>();
  /** Writes of the forward of a step that runs; undefined in recomputation and evaluation, which write nothing. */
  #pending: Write[] | undefined;

  /** @param handOn - takes a flat block's writes of a step; ownership passes */
  constructor(plan: BlockPlan, handOn: (block: number, writes: Tensor) => void) {
    this.#plan = plan;
    this.#layouts = plan.layouts.filter(({ written }) => written);
    this.#handOn = handOn;
  }

  /** Records the writes to the model's buffers from here on. */
  bind(): void {
    const { units, layouts, absent } = this.#plan;
    for (const { flats, parameters } of units) {
      const placed = flats.flatMap((flat) => {
        const layout = layouts[flat] as FlatBlock;
        return layout.parameters.map((place) => ({ layout, place }));
      });
      parameters.forEach((parameter, index) => {
        const { layout, place } = placed[index] as (typeof placed)[number];
        if (layout.written && parameter instanceof ModuleBuffer)
          parameter.writeThrough((value) =>
            this.#pending?.push({ layout, place, value: hold(value.clone()) }),
          );
      });
    }
    // Another stage holds it, and computes the writes to it.
    for (const parameter of absent) if (parameter instanceof ModuleBuffer) parameter.writeThrough(() => {});
  }

  /** Collects the writes of the forward that runs until the result is disposed. They count once it has ended: see {@link keep}. */
  collect(): Disposable {
    const pending: Write[] = [];
    this.#pending = pending;
    return {
      [Symbol.dispose]: () => {
        this.#pending = undefined;
        for (const { value } of pending) value.dispose();
      },
    };
  }

  /** Adds the collected writes to the step's: the forward has not thrown. */
  keep(): void {
    for (const write of this.#pending ?? []) this.#add(write);
  }

  /** Hands on all writes: no further forward of the step follows. */
  handOn(): void {
    for (const layout of this.#layouts) {
      const sums = this.#sumsOf(layout);
      this.#sums.delete(layout.index);
      this.#handOn(layout.index, sums);
    }
  }

  clear(): void {
    for (const sums of this.#sums.values()) sums.dispose();
    this.#sums.clear();
  }

  #add({ layout, place: { offset, numel }, value }: Write): void {
    scope(() => {
      const sums = this.#sumsOf(layout);
      sums.narrow(0, offset, numel).add_(value.reshape([-1]));
      sums.narrow(0, offset + numel, COUNT_NUMEL).add_(1);
    });
  }

  #sumsOf({ index, numel }: FlatBlock): Tensor {
    const known = this.#sums.get(index);
    if (known !== undefined) return known;
    const sums = tagMemory("gradients", () => hold(() => emptyShared([numel], { dtype: "float32" }).zero_()));
    this.#sums.set(index, sums);
    return sums;
  }
}
