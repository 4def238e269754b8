import { hold, ops, type Tensor } from "../../tensor/index.ts";

/** Gradients of tensors, by identity, summed in the order in which they come. */
export class TensorGradients {
  readonly #sums = new Map<Tensor, Tensor>();

  /** Adds to a tensor's gradient, if `gradient` is one; ownership passes. */
  add(tensor: Tensor, gradient: Tensor | null | undefined): void {
    if (gradient === null || gradient === undefined) return;
    const sum = this.#sums.get(tensor);
    // Out of place: autograd may hand one tensor to several inputs.
    this.#sums.set(tensor, hold(sum === undefined ? gradient : ops.add(sum, gradient)));
    if (sum !== undefined) {
      sum.dispose();
      gradient.dispose();
    }
  }

  /** @returns a tensor's gradient, if there is one; now the caller's */
  take(tensor: Tensor): Tensor | undefined {
    const gradient = this.#sums.get(tensor);
    this.#sums.delete(tensor);
    return gradient;
  }

  clear(): void {
    for (const gradient of this.#sums.values()) gradient.dispose();
    this.#sums.clear();
  }
}
