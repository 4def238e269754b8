import * as collectives from "../../collectives/index.ts";
import type { Affine } from "../../nn/index.ts";
import { ops, type Tensor } from "../../tensor/index.ts";

/**
 * The region between the split layers in which every rank has its share of the positions, so that norms, dropouts and the
 * residual stream are neither computed nor kept more than once. Before a split layer the positions are gathered; behind it sums
 * are reduced and scattered at once: as many bytes as one all-reduce. @see Korthikanti et al. 2022, "Reducing Activation
 * Recomputation in Large Transformer Models"
 */
export class SequenceRegion {
  readonly group: collectives.Communicator;
  /** The dim of positions in every activation. */
  readonly dim: number;
  /** Number of chunks in which gathers and scatters overlap the matrix product beside them; 1: no overlap. */
  readonly chunks: number;
  /**
   * Padding positions at the end, added when the region was last entered to make their number divide: they have no gradient, and
   * nothing reads them.
   */
  numPadding = 0;

  constructor(group: collectives.Communicator, dim: number, chunks: number) {
    this.group = group;
    this.dim = dim;
    this.chunks = chunks;
  }

  /**
   * Takes the rank's share of an activation that every rank has; zeros are added at the end if the ranks do not divide the
   * positions.
   */
  enter(x: Tensor): Tensor {
    const length = x.shape[this.dim] ?? 0;
    const { size } = this.group;
    this.numPadding = Math.ceil(length / size) * size - length;
    return collectives.scatterToGroup(this.#padded(x), this.group, this.dim);
  }

  /** @returns `run`, of which a second call, in backward, has the positions of the first */
  paddedOnce<Args extends readonly unknown[], R>(run: (...args: Args) => R): (...args: Args) => R {
    let first: number | undefined;
    return (...args) => {
      if (first === undefined) {
        first = this.numPadding;
        return run(...args);
      }
      const present = this.numPadding;
      this.numPadding = first;
      try {
        return run(...args);
      } finally {
        this.numPadding = present;
      }
    };
  }

  /** Gathers all positions, in front of a split layer: each rank makes a part of their gradient, and the parts are summed. */
  gather(share: Tensor): Tensor {
    return this.#unpadded(collectives.gatherSequence(share, this.group, this.dim));
  }

  /** Sums all ranks' parts behind a split layer, and keeps this rank's share. */
  reduceScatter(part: Tensor): Tensor {
    return collectives.reduceScatterSequence(this.#padded(part), this.group, this.dim);
  }

  /**
   * The outputs of a layer split by outputs, at all positions. These are gathered again in backward, not kept. For a low-rank
   * addition only its narrow half is gathered: each rank makes it from its own positions.
   */
  gatherOutputs(given: Tensor, layer: Affine): Tensor {
    const share = layer.scaledInputs(given);
    const own = this.#gatherOwn(share, layer);
    return layer.finish(
      layer.added === undefined ? own : layer.withAdded(own, this.gather(layer.down(share))),
    );
  }

  #gatherOwn(share: Tensor, layer: Affine): Tensor {
    if (this.numPadding > 0) return layer.ownProduct(this.gather(share));
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

  /** This rank's share of the product of a layer split by inputs; for a low-rank addition, sums of its narrow half. */
  productScatter(given: Tensor, layer: Affine): Tensor {
    const x = layer.scaledInputs(given);
    const own = this.#ownScatter(x, layer);
    return layer.added === undefined ? own : layer.withAdded(own, this.reduceScatter(layer.down(x)));
  }

  #ownScatter(x: Tensor, layer: Affine): Tensor {
    const chunks = this.#chunksOf(x, this.group.size);
    if (chunks === 1 || this.numPadding > 0) return this.reduceScatter(layer.ownProduct(x));
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

  /** Gathers all positions: every rank computes alike from here on. */
  leave(share: Tensor): Tensor {
    return this.#unpadded(collectives.gatherFromGroup(share, this.group, this.dim));
  }

  /** Number of chunks for each of `shares` shares of the positions: one if they do not divide. */
  #chunksOf(x: Tensor, shares: number): number {
    return (x.shape[this.dim] ?? 0) % (this.chunks * shares) === 0 ? this.chunks : 1;
  }

  #padded(x: Tensor): Tensor {
    if (this.numPadding === 0) return x;
    const shape = x.shape.map((size, dim) => (dim === this.dim ? this.numPadding : size));
    return ops.cat([x, ops.zeros(shape, x.dtype)], this.dim);
  }

  #unpadded(x: Tensor): Tensor {
    if (this.numPadding === 0) return x;
    return x.narrow(this.dim, 0, (x.shape[this.dim] ?? 0) - this.numPadding);
  }
}
