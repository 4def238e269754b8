import { firstPositions, type Initializer, Linear, Module, type PackedRow, zeros } from "../../nn/index.ts";
import type { Tensor } from "../../tensor/index.ts";

/** What stands for a whole row: its first position, through an affine map and tanh. */
export class Pooler extends Module {
  readonly dense: Linear;

  constructor(width: number, init: Initializer) {
    super();
    this.dense = new Linear(width, width, { init, biasInit: zeros, activation: "tanh" });
  }

  /** @param hidden - [B, T, D] @returns [B, D]; [n, D] of n samples that share a row */
  override forward(hidden: Tensor, segments?: PackedRow): Tensor {
    return this.dense.forward(segments ? firstPositions(hidden, segments) : firstPosition(hidden));
  }
}

/** [B, T, D] → [B, D]. */
export function firstPosition(hidden: Tensor): Tensor {
  return hidden.select(1, 0);
}
