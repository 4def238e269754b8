import { grad, hold, ops, type Tensor } from "../../tensor/index.ts";
import { type ForeignTensors, refuseForeign } from "./tape-checks.ts";

/** Gradients of leaves, in their order; `null` where one was not used. */
export interface LeafGradients {
  readonly leaves: readonly Tensor[];
  readonly gradients: readonly (Tensor | null)[];
}

/**
 * The graph between the blocks of one pass (embeddings, the loss): ordinary autograd from the roots and from the blocks' inputs
 * back to the blocks' outputs, received tensors and root parameters. Gradients gather at its edges, where the walk over the
 * blocks takes them up.
 */
export class OuterGraph {
  readonly #rootLeaves: () => readonly Tensor[];
  readonly #foreignTo: ForeignTensors;
  readonly #takesRows: boolean;
  /** Leaves at which autograd ends: results of blocks that are not walked yet, and received tensors. */
  readonly #ends = new Set<Tensor>();
  /** Gradients of those leaves and of the blocks' inputs. */
  readonly #gradients = new TensorGradients();

  /**
   * @param rootLeaves - parameters that no block owns and that are trainable now
   * @param takesRows - whether their gradients may be sparse, if they are tables of vectors
   */
  constructor(rootLeaves: () => readonly Tensor[], foreignTo: ForeignTensors, takesRows: boolean) {
    this.#rootLeaves = rootLeaves;
    this.#foreignTo = foreignTo;
    this.#takesRows = takesRows;
  }

  get ends(): ReadonlySet<Tensor> {
    return this.#ends;
  }

  /** Adds leaves at which autograd ends. */
  open(leaves: readonly Tensor[]): void {
    for (const leaf of leaves) this.#ends.add(leaf);
  }

  /** Removes the results of a walked block: nothing reaches them any more. */
  close(leaves: readonly Tensor[]): void {
    for (const leaf of leaves) this.#ends.delete(leaf);
  }

  /** Adds to the gradient that gathers at a tensor, if `gradient` is one; ownership passes. */
  add(tensor: Tensor, gradient: Tensor | null | undefined): void {
    this.#gradients.add(tensor, gradient);
  }

  /** @returns the gradient that has gathered at a tensor, if there is one; now the caller's */
  take(tensor: Tensor): Tensor | undefined {
    return this.#gradients.take(tensor);
  }

  /**
   * Follows a gradient from `output` to the ends.
   * @param gradient - of the output, still the caller's; left out for a scalar loss
   * @returns the gradients of the root's parameters, the caller's to dispose; undefined without any
   * @throws {TroupeError} `BLOCK_TENSOR` if it would pass the ends, if that is checked
   */
  pull(output: Tensor, gradient: Tensor | undefined): LeafGradients | undefined {
    if (this.#ends.has(output)) {
      this.#gradients.add(output, gradient === undefined ? ops.onesLike(output) : gradient.alias());
      return undefined;
    }
    const ends = [...this.#ends];
    const rootLeaves = this.#rootLeaves();
    const own = [...ends, ...rootLeaves];
    const foreign = this.#foreignTo(undefined, []);
    // A parameter of the root that was a block's input, and is frozen by now, has no gradient.
    if (own.length + foreign.length === 0 || !output.requiresGrad) return undefined;
    // Two block inputs may share a piece of the outer graph, so it must outlive one walk; it dies with its tensors.
    const gradients = grad([output], [...own, ...foreign], gradient && [gradient], {
      allowUnused: true,
      retainGraph: true,
      ...(this.#takesRows ? { firstByRows: ends.length } : {}),
    });
    refuseForeign(gradients.splice(own.length), "outside the blocks");
    ends.forEach((end, index) => {
      this.#gradients.add(end, gradients[index]);
    });
    const ofRoot = gradients.slice(ends.length);
    return ofRoot.length === 0 ? undefined : { leaves: rootLeaves, gradients: ofRoot };
  }

  clear(): void {
    this.#ends.clear();
    this.#gradients.clear();
  }
}

/** Gradients of tensors, by identity, summed in the order in which they come. */
class TensorGradients {
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
