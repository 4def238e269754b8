import { TroupeError } from "../../../errors/index.ts";
import { ops, type Tensor } from "../../tensor/index.ts";
import { Drawing } from "./drawing.ts";

/**
 * While training, leaves a layer out with probability p: what went into the layer is handed on, and the layer's own parameters
 * get gradients of zero. The layer is computed all the same, so that every rank gathers and reduces what the others do. Stands
 * at the layer's end.
 * @see Fan et al. 2019, https://arxiv.org/abs/1909.11556
 */
export class LayerDrop extends Drawing {
  readonly p: number;

  /** @throws {TroupeError} `MODULE_ARGUMENT` unless 0 ≤ p < 1 */
  constructor(p: number) {
    super();
    if (!(p >= 0 && p < 1)) {
      throw new TroupeError(
        "MODULE_ARGUMENT",
        { where: "LayerDrop", expected: "a probability in [0, 1)", got: `${p}` },
        { fields: { p } },
      );
    }
    this.p = p;
  }

  /**
   * @param made - what the layer made of `given`, of its shape
   * @throws {TroupeError} `RANDOMNESS_UNBOUND` while training with p > 0 where nothing is bound
   */
  override forward(made: Tensor, given: Tensor): Tensor {
    const { device } = made;
    if (!this.training || this.p === 0 || device === "meta") return made;
    return ops.where(this.uniform([], device).lt(this.p), given, made); // no number is read back
  }
}
