import { ops, type Tensor } from "../../tensor/index.ts";
import { isFused } from "../fusion.ts";
import { ones, zeros } from "../module/initializer.ts";
import { Module } from "../module/module.ts";
import { Parameter } from "../module/parameter.ts";

/**
 * Layer normalization over the last dim, with statistics in float32.
 * @see Ba et al. 2016, https://arxiv.org/abs/1607.06450
 */
export class LayerNorm extends Module {
  readonly weight: Parameter;
  readonly bias: Parameter;
  readonly eps: number;

  constructor(width: number, eps = 1e-5) {
    super();
    this.weight = new Parameter([width], ones);
    this.bias = new Parameter([width], zeros);
    this.eps = eps;
  }

  override forward(x: Tensor): Tensor {
    if (!isFused())
      return ops.layerNorm(x, [x.shape.at(-1) ?? 0], this.weight.tensor, this.bias.tensor, this.eps);
    return ops.troupe.layerNorm(x, this.weight.tensor, this.bias.tensor, this.eps); // [..., D]
  }

  /** Returns the sum of both inputs and its norm, in one pass over memory, as between two residual sublayers. */
  addThenNorm(x: Tensor, residual: Tensor): [sum: Tensor, normed: Tensor] {
    if (!isFused()) {
      const sum = x.add(residual);
      return [sum, this.forward(sum)];
    }
    return ops.troupe.addLayerNorm(x, residual, this.weight.tensor, this.bias.tensor, this.eps); // 2 × [..., D]
  }
}

/** Layer normalization without scale and bias, and so without parameters. */
export class BareLayerNorm extends Module {
  readonly eps: number;

  constructor(eps = 1e-5) {
    super();
    this.eps = eps;
  }

  override forward(x: Tensor): Tensor {
    return ops.layerNorm(x, [x.shape.at(-1) ?? 0], undefined, undefined, this.eps); // [..., D]
  }

  /** Returns the sum of both inputs and its norm. */
  addThenNorm(x: Tensor, residual: Tensor): [sum: Tensor, normed: Tensor] {
    const sum = x.add(residual);
    return [sum, this.forward(sum)];
  }
}
