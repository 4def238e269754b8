import { type Initializer, Linear, Module, zeros } from "../../nn/index.ts";
import type { Tensor } from "../../tensor/index.ts";

/** What stands for a whole row: its first position, through an affine map and tanh. */
export class Pooler extends Module {
  readonly dense: Linear;

  constructor(width: number, init: Initializer) {
    super();
    this.dense = new Linear(width, width, { init, biasInit: zeros, activation: "tanh" });
  }

  /** @param hidden - [B, T, D] @returns [B, D] */
  override forward(hidden: Tensor): Tensor {
    return this.dense.forward(firstPosition(hidden));
  }
}

/** [B, T, D] → [B, D]. */
export function firstPosition(hidden: Tensor): Tensor {
  return hidden.select(1, 0);
}
