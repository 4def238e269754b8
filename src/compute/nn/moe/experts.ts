import type { Tensor } from "../../tensor/index.ts";
import { type ActivationName, activations } from "../layers/activation.ts";
import { type Initializer, normal, zeros } from "../module/initializer.ts";
import { Module } from "../module/module.ts";
import { refuseUnknownOptions } from "../module/module-options.ts";
import { Parameter } from "../module/parameter.ts";

/** A set of experts: every parameter has one slice of dim 0 per expert, so that cutting that dim distributes experts to ranks. */
export abstract class Experts extends Module {
  /** Number of experts in the model, on all ranks. */
  abstract readonly numExperts: number;
  /** [E, N, D] → [E, N, D], each expert on its own rows. */
  abstract override forward(x: Tensor): Tensor;
}

/** Experts that are feed-forward layers, the usual kind. */
export class ExpertMLP extends Experts {
  readonly numExperts: number;
  readonly activation: ActivationName;
  readonly c_fc: Parameter;
  readonly c_fc_bias: Parameter;
  readonly c_proj: Parameter;
  readonly c_proj_bias: Parameter;

  constructor(
    numExperts: number,
    width: number,
    inner: number,
    options: {
      readonly activation?: ActivationName;
      readonly init?: Initializer;
      readonly outInit?: Initializer;
    } = {},
  ) {
    super();
    refuseUnknownOptions(this, options, { activation: true, init: true, outInit: true });
    const { activation = "gelu_new", init = normal(0, 0.02), outInit = init } = options;
    this.numExperts = numExperts;
    this.activation = activation;
    this.c_fc = new Parameter([numExperts, width, inner], init);
    this.c_fc_bias = new Parameter([numExperts, inner], zeros);
    this.c_proj = new Parameter([numExperts, inner, width], outInit);
    this.c_proj_bias = new Parameter([numExperts, width], zeros);
  }

  override forward(x: Tensor): Tensor {
    const inner = x.matmul(this.c_fc.tensor).add(this.c_fc_bias.tensor.unsqueeze(1)); // [E, N, I]
    const active = activations[this.activation](inner);
    return active.matmul(this.c_proj.tensor).add(this.c_proj_bias.tensor.unsqueeze(1)); // [E, N, D]
  }
}
