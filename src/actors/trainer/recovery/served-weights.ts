import { type RefOptions, shareRef, type Tensor } from "../../../compute/tensor/index.ts";
import type { HeldWeights } from "../../protocols/index.ts";

/** The weights that a frozen copy serves and never trains, which its checkpointer has in memory. Owns them. */
export class ServedWeights implements Disposable {
  #weights: HeldWeights<Tensor>;

  /** @param weights - ownership passes */
  constructor(weights: HeldWeights<Tensor>) {
    this.#weights = weights;
  }

  get now(): HeldWeights<Tensor> {
    return this.#weights;
  }

  /** Serves these instead; ownership passes. A call that is made again gives the same. */
  replace(weights: HeldWeights<Tensor>): void {
    if (weights.tensors !== this.#weights.tensors) this[Symbol.dispose]();
    this.#weights = weights;
  }

  /** @returns the weights as a message carries them */
  refs(options: RefOptions): HeldWeights {
    const { tensors, ...state } = this.#weights;
    const refs = Object.entries(tensors).map(
      ([name, { shape, values }]) => [name, { shape, values: shareRef(values, options) }] as const,
    );
    return { ...state, tensors: Object.fromEntries(refs) };
  }

  [Symbol.dispose](): void {
    for (const { values } of Object.values(this.#weights.tensors)) values.dispose();
  }
}
