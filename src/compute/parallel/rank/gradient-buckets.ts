import { type DType, emptyShared, hold, ops, type Tensor, tagMemory, zeros } from "../../tensor/index.ts";
import type { FlatBlock } from "../blocks/flat-block.ts";

/**
 * Collects a rank's gradients, block by block, in flat buffers laid out like the parameters.
 *
 * A micro-batch is summed by itself in the compute dtype, as autograd would; micro-batches are added to each other in
 * float32, one after the other. So a rank that accumulates k micro-batches adds in the order in which k ranks are
 * reduced, and gets the same bits.
 *
 * Contributions to different parameters are collected at once: of a model's root, whose embeddings' gradients come long after its
 * head's, a buffer of zeros would be written first and read again for the sum.
 */
export class GradientBuckets {
  readonly #layouts: readonly FlatBlock[];
  readonly #dtype: DType;
  /** Contributions not in a buffer yet: at most one for each parameter. */
  readonly #waiting = new Map<number, (Tensor | undefined)[]>();
  readonly #micro = new Map<number, Tensor>();
  /** Buffers of the present micro-batch with nothing in them but gradients that were computed there. */
  readonly #opened = new Map<number, Tensor>();
  readonly #sums = new Map<number, Tensor>();

  /** @param dtype - of the gradients that autograd makes */
  constructor(layouts: readonly FlatBlock[], dtype: DType) {
    this.#layouts = layouts;
    this.#dtype = dtype;
  }

  /** Adds gradients in the order of the block's parameters to the present micro-batch's; `null` counts as zero. */
  contribute(block: number, gradients: readonly (Tensor | null)[]): void {
    const waiting = this.#waiting.get(block);
    if (waiting?.some((one, index) => one !== undefined && gradients[index] !== null))
      this.#collectWaiting(block);
    else if (waiting === undefined && !gradients.includes(null)) {
      this.#collect(block, gradients as readonly Tensor[]);
      return;
    }
    const before = this.#waiting.get(block);
    this.#waiting.set(
      block,
      gradients.map((gradient, index) =>
        gradient === null ? before?.[index] : hold(() => gradient.detach()),
      ),
    );
  }

  /**
   * @returns the buffer for a block's first gradients of the micro-batch: those that lie in their places there are not copied;
   * undefined once it has some
   */
  open(block: number): Tensor | undefined {
    if (this.#micro.has(block) || this.#waiting.has(block)) return undefined;
    const flat = this.#opened.get(block) ?? this.#empty(block);
    this.#opened.set(block, flat);
    return flat;
  }

  endMicroBatch(block: number): void {
    this.#collectWaiting(block);
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

  #collectWaiting(block: number): void {
    const waiting = this.#waiting.get(block);
    if (waiting === undefined) return;
    this.#waiting.delete(block);
    this.#collect(block, waiting);
    for (const gradient of waiting) gradient?.dispose();
  }

  #collect(block: number, gradients: readonly (Tensor | undefined)[]): void {
    const layout = this.#layouts[block] as FlatBlock;
    const offsets = layout.parameters.map((parameter) => parameter.offset);
    const present = this.#micro.get(block);
    const flat = present ?? this.#opened.get(block) ?? this.#empty(block);
    this.#opened.delete(block);
    ops.troupe.collectGradients_(flat, gradients, offsets, present !== undefined);
    this.#micro.set(block, flat);
  }

  #empty(block: number): Tensor {
    const { numel } = this.#layouts[block] as FlatBlock;
    return tagMemory("gradients", () => hold(() => emptyShared([numel], { dtype: this.#dtype })));
  }

  /** @returns the block's summed flat gradient, zeros where nothing was contributed; now the caller's */
  take(block: number): Tensor {
    const sum = this.#sums.get(block);
    this.#sums.delete(block);
    const { numel } = this.#layouts[block] as FlatBlock;
    return sum ?? tagMemory("gradients", () => hold(() => zeros([numel], { dtype: this.#dtype })));
  }

  clear(): void {
    const waiting = [...this.#waiting.values()].flat();
    const flats = [this.#opened, this.#micro, this.#sums].flatMap((each) => [...each.values()]);
    for (const tensor of [...waiting, ...flats]) tensor?.dispose();
    this.#waiting.clear();
    this.#opened.clear();
    this.#micro.clear();
    this.#sums.clear();
  }
}
