import { ops, type Tensor } from "../../tensor/index.ts";
import { isFused } from "../fusion.ts";
import { ones } from "../module/initializer.ts";
import { Module } from "../module/module.ts";
import { Parameter } from "../module/parameter.ts";

/**
 * Root-mean-square normalization over the last dim: x / √(mean(x²) + eps) · weight, with sums in float32. No mean is
 * subtracted and no bias is added.
 * @see Zhang and Sennrich 2019, https://arxiv.org/abs/1910.07467
 */
export class RMSNorm extends Module {
  readonly weight: Parameter;
  readonly eps: number;

  constructor(width: number, eps = 1e-6) {
    super();
    this.weight = new Parameter([width], ones);
    this.eps = eps;
  }

  override forward(x: Tensor): Tensor {
    if (!isFused()) {
      const numbers = x.to("float32");
      const normed = numbers.mul(numbers.square().mean([-1], true).add(this.eps).rsqrt());
      return normed.to(x.dtype).mul(this.weight.tensor);
    }
    return ops.troupe.rmsNorm(x, this.weight.tensor, this.eps); // [..., D]
  }

  /** Returns the sum of both inputs and its norm, in one pass over memory, as between two residual sublayers. */
  addThenNorm(x: Tensor, residual: Tensor): [sum: Tensor, normed: Tensor] {
    if (!isFused()) {
      const sum = x.add(residual);
      return [sum, this.forward(sum)];
    }
    return ops.troupe.addRmsNorm(x, residual, this.weight.tensor, this.eps); // 2 × [..., D]
  }
}
