import { ops, type Tensor } from "../tensor/index.ts";
import { type Initializer, uniform, zeros } from "./initializer.ts";
import { Module } from "./module.ts";
import { Parameter } from "./parameter.ts";

/** What an affine map may be told beside its sizes. */
export interface AffineOptions {
  /** Whether a bias is added; true unless told otherwise. */
  readonly bias?: boolean;
  /** Starts the weight. */
  readonly init?: Initializer;
}

/** y = x Wᵀ + b over the last dim; weight [out, in], as in torch. Weight and bias start uniform in ±1/√in. */
export class Linear extends Module {
  /** Another module's parameter may be put here: that ties the two. */
  weight: Parameter;
  readonly bias: Parameter | null;

  constructor(numInputs: number, numOutputs: number, options: AffineOptions = {}) {
    super();
    const bound = 1 / Math.sqrt(numInputs);
    this.weight = new Parameter([numOutputs, numInputs], options.init ?? uniform(-bound, bound));
    this.bias = options.bias === false ? null : new Parameter([numOutputs], uniform(-bound, bound));
  }

  override forward(x: Tensor): Tensor {
    return ops.linear(x, this.weight.tensor, this.bias?.tensor); // [..., in] → [..., out]
  }
}

/**
 * GPT-2's affine map: y = x W + b over the last dim, weight [in, out], the transpose of {@link Linear}'s. Starts
 * normal with deviation 0.02, bias zero.
 */
export class Conv1D extends Module {
  readonly weight: Parameter;
  readonly bias: Parameter;

  constructor(
    numInputs: number,
    numOutputs: number,
    init: Initializer = { kind: "normal", mean: 0, std: 0.02 },
  ) {
    super();
    this.weight = new Parameter([numInputs, numOutputs], init);
    this.bias = new Parameter([numOutputs], zeros);
  }

  override forward(x: Tensor): Tensor {
    const [numInputs = 0, numOutputs = 0] = this.weight.shape;
    const rows = x.reshape([-1, numInputs]); // [N, in]
    const out = ops.addmm(this.bias.tensor, rows, this.weight.tensor); // [N, out]
    return out.view([...x.shape.slice(0, -1), numOutputs]); // [..., out]
  }

  /** The same followed by GELU in its tanh form, bias and activation in one pass. A wrapped `forward` is not met. */
  gelu(x: Tensor): Tensor {
    if (x.dtype === "float64") return ops.gelu(this.forward(x), "tanh"); // the fused kernel has no float64
    const [numInputs = 0, numOutputs = 0] = this.weight.shape;
    const product = x.reshape([-1, numInputs]).matmul(this.weight.tensor); // [N, out]
    return ops.troupe.biasGelu(product, this.bias.tensor).view([...x.shape.slice(0, -1), numOutputs]); // [..., out]
  }
}
