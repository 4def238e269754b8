import { type DType, emptyShared, hold, ops, type Tensor, tagMemory, zeros } from "../../tensor/index.ts";
import type { FlatBlock } from "../blocks/flat-block.ts";

/**
 * Collects a rank's gradients, block by block, in flat buffers laid out like the parameters.
 *
 * A micro-batch is summed by itself in the compute dtype, as autograd would; micro-batches are added to each other in
 * float32, one after the other. So a rank that accumulates k micro-batches adds in the order in which k ranks are
 * reduced, and gets the same bits.
 */
export class GradientBuckets {
  readonly #layouts: readonly FlatBlock[];
  readonly #dtype: DType;
  readonly #micro = new Map<number, Tensor>();
  readonly #sums = new Map<number, Tensor>();

  /** @param dtype - of the gradients that autograd makes */
  constructor(layouts: readonly FlatBlock[], dtype: DType) {
    this.#layouts = layouts;
    this.#dtype = dtype;
  }

  /** Adds gradients in the order of the block's parameters to the present micro-batch's; `null` counts as zero. */
  contribute(block: number, gradients: readonly (Tensor | null)[]): void {
    const layout = this.#layouts[block] as FlatBlock;
    const offsets = layout.parameters.map((parameter) => parameter.offset);
    const present = this.#micro.get(block);
    const flat =
      present ??
      tagMemory("gradients", () => hold(() => emptyShared([layout.numel], { dtype: this.#dtype })));
    const given = gradients.map((gradient) => gradient ?? undefined);
    ops.troupe.collectGradients_(flat, given, offsets, present !== undefined);
    this.#micro.set(block, flat);
  }

  /** Ends the present micro-batch for `block`. */
  endMicroBatch(block: number): void {
    const micro = this.#micro.get(block);
    if (micro === undefined) return;
    this.#micro.delete(block);
    const sum = this.#sums.get(block);
    if (sum === undefined) {
      this.#sums.set(block, micro);
      return;
    }
    const wide = sum.dtype === "float32" ? sum : tagMemory("gradients", () => hold(() => sum.to("float32")));
    if (wide !== sum) sum.dispose();
    ops.add_(wide, micro);
    micro.dispose();
    this.#sums.set(block, wide);
  }

  /** @returns the block's summed flat gradient, zeros where nothing was contributed; now the caller's */
  take(block: number): Tensor {
    const sum = this.#sums.get(block);
    this.#sums.delete(block);
    const { numel } = this.#layouts[block] as FlatBlock;
    return sum ?? tagMemory("gradients", () => hold(() => zeros([numel], { dtype: this.#dtype })));
  }

  /** Forgets everything of a pass that will not be finished. */
  clear(): void {
    for (const tensor of [...this.#micro.values(), ...this.#sums.values()]) tensor.dispose();
    this.#micro.clear();
    this.#sums.clear();
  }
}
