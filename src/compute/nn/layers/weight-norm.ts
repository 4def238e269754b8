import { empty, ops, scope, type Tensor } from "../../tensor/index.ts";
import {
  defineInitializer,
  type Initializer,
  initializeSlice,
  uniform,
  zeros,
} from "../module/initializer.ts";
import { Module } from "../module/module.ts";
import { Parameter } from "../module/parameter.ts";
import { type ConvolutionOptions, convolve1d } from "./convolution.ts";

/**
 * A weight as magnitude times direction: original0 · original1 / ‖original1‖, norms over all dims but one. Named as torch's
 * `parametrizations.weight_norm` names them; the magnitude starts as the norm, so the weight starts as `init` has it.
 * @see Salimans and Kingma 2016, https://arxiv.org/abs/1602.07868
 */
class WeightNorm extends Module {
  /** Magnitudes: 1 in every dim but the one that is told. */
  readonly original0: Parameter;
  readonly original1: Parameter;
  /** Dims that norms are over. */
  readonly #normed: readonly number[];

  /** @param dim - the dim whose entries have a magnitude each */
  constructor(shape: readonly number[], dim: number, init: Initializer) {
    super();
    const magnitudes = shape.map((size, place) => (place === dim ? size : 1));
    this.original0 = new Parameter(magnitudes, norms({ shape, dim, init }));
    this.original1 = new Parameter(shape, init);
    this.#normed = shape.map((_, place) => place).filter((place) => place !== dim);
  }

  /** @returns the weight, of the shape told */
  override forward(): Tensor {
    const direction = this.original1.tensor;
    return direction.mul(this.original0.tensor.div(ops.linalgVectorNorm(direction, 2, this.#normed, true)));
  }
}

/** {@link Conv1d} whose weight is a {@link WeightNorm}, as torch names them: bias, parametrizations.weight.original0 and 1. */
export class WeightNormConv1d extends Module {
  readonly bias: Parameter;
  readonly parametrizations: Parametrizations;
  readonly #options: ConvolutionOptions;

  /** @param dim - of the weight [out, in / groups, kernel] the dim whose entries have a magnitude each: 2 in wav2vec 2 */
  constructor(
    numInputs: number,
    numOutputs: number,
    kernel: number,
    dim: 0 | 1 | 2,
    options: Omit<ConvolutionOptions, "bias"> = {},
  ) {
    super();
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

/** Where torch keeps what a weight is computed from. */
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

/** Draws the directions again, which are known by their name, and takes their norms. */
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
