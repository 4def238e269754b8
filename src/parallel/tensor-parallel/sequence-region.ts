import {
  type Communicator,
  gatherFromGroup,
  gatherSequence,
  reduceScatterSequence,
  scatterToGroup,
} from "../../collectives/index.ts";
import { TroupeError } from "../../errors.ts";
import { gradEnabled, ops, type Tensor } from "../../tensor/index.ts";

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
  /** Positions of the pass that is running that were added to make their number divide; none while gradients are made. */
  #numPadding = 0;

  constructor(group: Communicator, dim: number) {
    this.group = group;
    this.dim = dim;
  }

  /**
   * The own share of what every rank has whole.
   * @throws {TroupeError} `SEQUENCE_LENGTH` where the ranks do not divide the positions while gradients are recorded;
   *   elsewhere zeros are added at the end meanwhile
   */
  enter(whole: Tensor): Tensor {
    const length = whole.shape[this.dim] ?? 0;
    const { size } = this.group;
    this.#numPadding = Math.ceil(length / size) * size - length;
    if (this.#numPadding > 0 && gradEnabled()) {
      throw new TroupeError(
        "SEQUENCE_LENGTH",
        `[sequenceParallel] expected positions in multiples of ${size}, the tensor-parallel ranks that share them: got ${length} (choose another length)`,
        { fields: { length, size } },
      );
    }
    return scatterToGroup(this.#padded(whole), this.group, this.dim);
  }

  /** All positions, in front of a layer that is split: each rank makes a part of their gradient, and the parts are summed. */
  gather(share: Tensor): Tensor {
    return this.#unpadded(gatherSequence(share, this.group, this.dim));
  }

  /** The own share of the sum of all ranks' parts, behind a layer that is split. */
  reduceScatter(part: Tensor): Tensor {
    return reduceScatterSequence(this.#padded(part), this.group, this.dim);
  }

  /** All positions, for what every rank computes alike from here on. */
  leave(share: Tensor): Tensor {
    return this.#unpadded(gatherFromGroup(share, this.group, this.dim));
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
