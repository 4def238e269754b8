import { ops, type Tensor } from "../../tensor/index.ts";
import { argumentError } from "../argument-error.ts";
import { Drawing } from "./drawing.ts";

/**
 * While training, skips a layer with probability p: returns the layer's input, so that the layer's parameters get zero
 * gradients. The layer is computed all the same, so that all ranks gather and reduce the same. Call it at the layer's end.
 * @see Fan et al. 2019, https://arxiv.org/abs/1909.11556
 */
export class LayerDrop extends Drawing {
  readonly p: number;

  /** @throws {TroupeError} `MODULE_ARGUMENT` unless 0 ≤ p < 1 */
  constructor(p: number) {
    super();
    if (!(p >= 0 && p < 1)) throw argumentError("LayerDrop", "a probability in [0, 1)", p, { p });
    this.p = p;
  }

  /**
   * @param made - output of the layer
   * @param given - input of the layer, of the same shape
   * @throws {TroupeError} `RANDOMNESS_UNBOUND` while training with p > 0 if no randomness is bound
   */
  override forward(made: Tensor, given: Tensor): Tensor {
    const { device } = made;
    if (!this.training || this.p === 0 || device === "meta") return made;
    return ops.where(this.uniform([], device).lt(this.p), given, made); // no number is read back
  }
}
