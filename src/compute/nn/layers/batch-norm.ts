import { TroupeError } from "../../../errors/index.ts";
import { noGrad, numelOf, ops, type Tensor } from "../../tensor/index.ts";
import { ModuleBuffer } from "../module/buffer.ts";
import { ones, zeros } from "../module/initializer.ts";
import { Module } from "../module/module.ts";
import { refuseUnknownOptions } from "../module/module-options.ts";
import { Parameter } from "../module/parameter.ts";

/** Options of batch normalization; defaults are torch.nn.BatchNorm's. */
export interface BatchNormOptions {
  /** Added to variances. Default: 1e-5. */
  readonly eps?: number;
  /** Weight of the newest batch in the running averages; null for a plain mean of all batches. Default: 0.1. */
  readonly momentum?: number | null;
}

/**
 * Batch normalization over all dims except the channels (dim 1), as torch.nn.BatchNorm: with the biased variance of the batch
 * in training, with the running averages in evaluation. The running variance is unbiased.
 *
 * A batch is the input of one forward: one micro-batch of one replica. Each updates the averages of before the step by its
 * own statistics; after the step the averages become the mean of these updates.
 * @see Ioffe and Szegedy 2015, https://arxiv.org/abs/1502.03167
 */
abstract class BatchNorm extends Module {
  readonly weight: Parameter;
  readonly bias: Parameter;
  readonly running_mean: ModuleBuffer;
  readonly running_var: ModuleBuffer;
  /** Number of steps averaged. Exact while it times the micro-batches per step is below 2^24. */
  readonly num_batches_tracked: ModuleBuffer;
  readonly eps: number;
  readonly momentum: number | null;
  /** Dims that an input may have. */
  readonly #dims: readonly number[];

  constructor(channels: number, options: BatchNormOptions, dims: readonly number[]) {
    super();
    refuseUnknownOptions(this, options, { eps: true, momentum: true });
    const { eps = 1e-5, momentum = 0.1 } = options;
    this.weight = new Parameter([channels], ones);
    this.bias = new Parameter([channels], zeros);
    this.running_mean = new ModuleBuffer([channels], zeros);
    this.running_var = new ModuleBuffer([channels], ones);
    this.num_batches_tracked = new ModuleBuffer([], zeros);
    this.eps = eps;
    this.momentum = momentum;
    this.#dims = dims;
  }

  /** @throws {TroupeError} `BATCH_NORM` for an input of other dims or channels, or a batch of one value a channel */
  override forward(x: Tensor): Tensor {
    this.#check(x);
    if (this.training) return this.#train(x);
    return this.#normalize(x, this.running_mean.tensor, this.running_var.tensor, false, 0);
  }

  #train(x: Tensor): Tensor {
    const averages = [this.running_mean, this.running_var] as const;
    // The kernel updates these in place, so they are copies: the step's other micro-batches read the old averages.
    const [mean, variance] = noGrad(() => averages.map(({ tensor }) => tensor.clone())) as [Tensor, Tensor];
    const normed = this.#normalize(x, mean, variance, true, this.momentum ?? 1);
    noGrad(() => {
      const count = this.num_batches_tracked.tensor.add(1);
      this.num_batches_tracked.write(count);
      [mean, variance].forEach((moved, index) => {
        const average = averages[index] as ModuleBuffer;
        const { tensor } = average;
        average.write(this.momentum === null ? tensor.add(moved.sub(tensor).div(count)) : moved);
      });
    });
    return normed; // x's shape
  }

  /** Normalizes with statistics, weight and bias in one dtype, which may be wider than the input's, as the kernel requires. */
  #normalize(x: Tensor, mean: Tensor, variance: Tensor, training: boolean, momentum: number): Tensor {
    const [weight, bias] = [this.weight, this.bias].map(({ tensor }) => tensor.to(mean.dtype));
    return ops.batchNorm(x, weight, bias, mean, variance, training, momentum, this.eps, false);
  }

  #check({ shape }: Tensor): void {
    const [channels] = this.weight.shape;
    const isFew = this.training && numelOf(shape) === channels;
    if (this.#dims.includes(shape.length) && shape[1] === channels && !isFew) return;
    throw new TroupeError("BATCH_NORM", {
      where: this.constructor.name,
      expected: `an input of ${this.#dims.join(" or ")} dims with ${channels} channels in dim 1${isFew ? ", and more than one value of each" : ""}`,
      got: `one of shape [${shape}]`,
      hint: "a variance needs two values, and BatchNorm was made with this number of channels",
      fields: { shape, channels },
    });
  }
}

/** Batch normalization of [batch, channels] or [batch, channels, length], as torch.nn.BatchNorm1d. */
export class BatchNorm1d extends BatchNorm {
  /** @param channels - size of dim 1 */
  constructor(channels: number, options: BatchNormOptions = {}) {
    super(channels, options, [2, 3]);
  }
}

/** Batch normalization of [batch, channels, height, width], as torch.nn.BatchNorm2d. */
export class BatchNorm2d extends BatchNorm {
  /** @param channels - size of dim 1 */
  constructor(channels: number, options: BatchNormOptions = {}) {
    super(channels, options, [4]);
  }
}
