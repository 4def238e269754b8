import { ops, type Tensor } from "../../tensor/index.ts";
import { argumentError } from "../argument-error.ts";
import { ones, zeros } from "../module/initializer.ts";
import { Module } from "../module/module.ts";
import { Parameter } from "../module/parameter.ts";

/**
 * Group normalization: each sample is normalized over groups of channels (dim 1) and all positions, as torch.nn.GroupNorm.
 * @see Wu and He 2018, https://arxiv.org/abs/1803.08494
 */
export class GroupNorm extends Module {
  readonly weight: Parameter;
  readonly bias: Parameter;
  readonly numGroups: number;
  readonly eps: number;

  /** @throws {TroupeError} `MODULE_ARGUMENT` unless the groups divide the channels */
  constructor(numGroups: number, numChannels: number, eps = 1e-5) {
    super();
    if (!(numGroups >= 1 && numChannels % numGroups === 0)) {
      const expected = `groups that divide ${numChannels} channels`;
      throw argumentError("GroupNorm", expected, numGroups, { numGroups, numChannels });
    }
    this.weight = new Parameter([numChannels], ones);
    this.bias = new Parameter([numChannels], zeros);
    this.numGroups = numGroups;
    this.eps = eps;
  }

  /** @param x - [batch, channels, ...] */
  override forward(x: Tensor): Tensor {
    return ops.groupNorm(x, this.numGroups, this.weight.tensor, this.bias.tensor, this.eps);
  }
}
