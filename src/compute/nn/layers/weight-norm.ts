import type { NamesOf } from "../../../errors/index.ts";
import { empty, ops, scope, type Tensor } from "../../tensor/index.ts";
import {
  defineInitializer,
  type Initializer,
  initializeSlice,
  uniform,
  zeros,
} from "../module/initializer.ts";
import { Module } from "../module/module.ts";
import { refuseUnknownOptions } from "../module/module-options.ts";
import { Parameter } from "../module/parameter.ts";
import { type ConvolutionOptions, convolve1d } from "./convolution.ts";

/**
 * Weight normalization: a weight as magnitude times direction, original0 · original1 / ‖original1‖, with norms over all dims
 * but one. The names are those of torch's `parametrizations.weight_norm`. The magnitude is initialized as the norm, so that
 * the weight begins as `init`.
 * @see Salimans and Kingma 2016, https://arxiv.org/abs/1602.07868
 */
class WeightNorm extends Module {
  /** Magnitudes: size 1 in every dim except `dim`. */
  readonly original0: Parameter;
  readonly original1: Parameter;
  /** Dims over which norms are taken. */
  readonly #normed: readonly number[];

  /** @param dim - the dim whose entries each have a magnitude */
  constructor(shape: readonly number[], dim: number, init: Initializer) {
    super();
    const magnitudes = shape.map((size, place) => (place === dim ? size : 1));
    this.original0 = new Parameter(magnitudes, norms({ shape, dim, init }));
    this.original1 = new Parameter(shape, init);
    this.#normed = shape.map((_, place) => place).filter((place) => place !== dim);
  }

  /** Computes the weight. */
  override forward(): Tensor {
    const direction = this.original1.tensor;
    return direction.mul(this.original0.tensor.div(ops.linalgVectorNorm(direction, 2, this.#normed, true)));
  }
}

const OPTIONS: NamesOf<Omit<ConvolutionOptions, "bias">> = {
  stride: true,
  padding: true,
  dilation: true,
  groups: true,
  init: true,
};

/** A {@link Conv1d} whose weight is a {@link WeightNorm}, with torch's names: bias, parametrizations.weight.original0 and 1. */
export class WeightNormConv1d extends Module {
  readonly bias: Parameter;
  readonly parametrizations: Parametrizations;
  readonly #options: ConvolutionOptions;

  /** @param dim - the dim of the weight [out, in / groups, kernel] whose entries each have a magnitude: 2 in wav2vec 2 */
  constructor(
    numInputs: number,
    numOutputs: number,
    kernel: number,
    dim: 0 | 1 | 2,
    options: Omit<ConvolutionOptions, "bias"> = {},
  ) {
    super();
    refuseUnknownOptions(this, options, OPTIONS);
    const perOutput = (numInputs / (options.groups ?? 1)) * kernel;
    const bound = 1 / Math.sqrt(perOutput);
    this.bias = new Parameter([numOutputs], options.init === undefined ? uniform(-bound, bound) : zeros);
    this.parametrizations = new Parametrizations(
      new WeightNorm([numOutputs, perOutput / kernel, kernel], dim, options.init ?? uniform(-bound, bound)),
    );
    this.#options = options;
  }

  /** @param x - [batch, channels, length] */
  override forward(x: Tensor): Tensor {
    return convolve1d(x, this.parametrizations.forward(), this.bias.tensor, this.#options);
  }
}

/** The child under which torch keeps the parts of a weight. */
class Parametrizations extends Module {
  readonly weight: WeightNorm;

  constructor(weight: WeightNorm) {
    super();
    this.weight = weight;
  }

  override forward(): Tensor {
    return this.weight.forward();
  }
}

interface Directions {
  readonly shape: readonly number[];
  readonly dim: number;
  readonly init: Initializer;
}

/** Draws the directions again, by their parameter's name, and returns their norms. */
const norms = defineInitializer<Directions>(
  import.meta.url,
  "weight-norm magnitudes",
  ({ seed, name, begin, end }, { shape, dim, init }) =>
    scope(() => {
      const directions = empty(shape);
      const spec = { name: name.replace(/original0$/, "original1"), shape, init };
      initializeSlice(directions, spec, seed, 0);
      const normed = shape.map((_, place) => place).filter((place) => place !== dim);
      return ops
        .linalgVectorNorm(directions, 2, normed, false)
        .narrow(0, begin, end - begin)
        .toTypedArray() as Float32Array;
    }),
);
