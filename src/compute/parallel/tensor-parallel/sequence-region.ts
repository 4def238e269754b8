import {
  type Communicator,
  gatherFromGroup,
  gatherSequence,
  reduceScatterSequence,
  scatterToGroup,
} from "../../collectives/index.ts";
import type { Affine } from "../../nn/index.ts";
import { ops, type Tensor } from "../../tensor/index.ts";

/**
 * Where every rank has its share of the positions: between the split layers, so that what lies there (norms, dropouts,
 * the residual stream) is neither computed nor kept more than once. Before a split layer the positions are gathered,
 * behind it sums are reduced and scattered at once: as many bytes as one all-reduce.
 * @see Korthikanti et al. 2022, "Reducing Activation Recomputation in Large Transformer Models"
 */
export class SequenceRegion {
  readonly group: Communicator;
  /** Of positions, in every activation. */
  readonly dim: number;
  /** In how many chunks what is gathered and scattered overlaps the matrix product beside it; 1: not at all. */
  readonly chunks: number;
  /** Positions that were added at the end, where the region was entered last, to make their number divide. */
  #numPadding = 0;

  constructor(group: Communicator, dim: number, chunks: number) {
    this.group = group;
    this.dim = dim;
    this.chunks = chunks;
  }

  /** Of what is shared now, how many positions at the end are none: they have no gradient, and nothing reads them. */
  get numPadding(): number {
    return this.#numPadding;
  }

  /** The own share of what every rank has whole; zeros are added at the end where the ranks do not divide the positions. */
  enter(whole: Tensor): Tensor {
    const length = whole.shape[this.dim] ?? 0;
    const { size } = this.group;
    this.#numPadding = Math.ceil(length / size) * size - length;
    return scatterToGroup(this.#padded(whole), this.group, this.dim);
  }

  /** @returns `run`, of which a second call, in backward, has the positions of the first */
  paddedOnce<Args extends readonly unknown[], R>(run: (...args: Args) => R): (...args: Args) => R {
    let first: number | undefined;
    return (...args) => {
      if (first === undefined) {
        first = this.#numPadding;
        return run(...args);
      }
      const present = this.#numPadding;
      this.#numPadding = first;
      try {
        return run(...args);
      } finally {
        this.#numPadding = present;
      }
    };
  }

  /** All positions, in front of a layer that is split: each rank makes a part of their gradient, and the parts are summed. */
  gather(share: Tensor): Tensor {
    return this.#unpadded(gatherSequence(share, this.group, this.dim));
  }

  /** The own share of the sum of all ranks' parts, behind a layer that is split. */
  reduceScatter(part: Tensor): Tensor {
    return reduceScatterSequence(this.#padded(part), this.group, this.dim);
  }

  /**
   * The product of a layer that is split by outputs with all positions. These are gathered again in backward, not kept. Of what
   * is added to the product only the narrow half is gathered: each rank makes it of its own positions.
   */
  gatherProduct(given: Tensor, layer: Affine): Tensor {
    const share = layer.scaledInputs(given);
    const own = this.#gatherOwn(share, layer);
    return layer.added === undefined ? own : layer.withAdded(own, this.gather(layer.down(share)));
  }

  #gatherOwn(share: Tensor, layer: Affine): Tensor {
    if (this.#numPadding > 0) return layer.ownProduct(this.gather(share));
    const chunks = this.#chunksOf(share, 1);
    const outputsFirst = layer.outputDim === 0;
    return ops.troupe.gatherMatmul(
      share,
      layer.weight.tensor,
      outputsFirst,
      this.group.number,
      this.dim,
      chunks,
    );
  }

  /** The own share of the product of a layer that is split by inputs; of what is added to it, sums of the narrow half. */
  productScatter(given: Tensor, layer: Affine): Tensor {
    const x = layer.scaledInputs(given);
    const own = this.#ownScatter(x, layer);
    return layer.added === undefined ? own : layer.withAdded(own, this.reduceScatter(layer.down(x)));
  }

  #ownScatter(x: Tensor, layer: Affine): Tensor {
    const chunks = this.#chunksOf(x, this.group.size);
    if (chunks === 1 || this.#numPadding > 0) return this.reduceScatter(layer.ownProduct(x));
    const outputsFirst = layer.outputDim === 0;
    return ops.troupe.matmulReduceScatter(
      x,
      layer.weight.tensor,
      outputsFirst,
      this.group.number,
      this.dim,
      chunks,
    );
  }

  /** All positions, for what every rank computes alike from here on. */
  leave(share: Tensor): Tensor {
    return this.#unpadded(gatherFromGroup(share, this.group, this.dim));
  }

  /** Into how many chunks each of `shares` shares of the positions is cut: one, where they do not divide. */
  #chunksOf(x: Tensor, shares: number): number {
    return (x.shape[this.dim] ?? 0) % (this.chunks * shares) === 0 ? this.chunks : 1;
  }

  #padded(x: Tensor): Tensor {
    if (this.#numPadding === 0) return x;
    const shape = x.shape.map((size, dim) => (dim === this.dim ? this.#numPadding : size));
    return ops.cat([x, ops.zeros(shape, x.dtype)], this.dim);
  }

  #unpadded(x: Tensor): Tensor {
    if (this.#numPadding === 0) return x;
    return x.narrow(this.dim, 0, (x.shape[this.dim] ?? 0) - this.#numPadding);
  }
}
