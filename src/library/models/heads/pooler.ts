import { type Initializer, Linear, Module, zeros } from "../../../compute/nn/index.ts";
import type { Tensor } from "../../../compute/tensor/index.ts";

/** Makes one vector per row: its first position, through an affine map and tanh. */
export class Pooler extends Module {
  readonly dense: Linear;

  constructor(width: number, init: Initializer) {
    super();
    this.dense = new Linear(width, width, { init, biasInit: zeros, activation: "tanh" });
  }

  /** @param first - [B, D] @returns [B, D] */
  override forward(first: Tensor): Tensor {
    return this.dense.forward(first);
  }
}
