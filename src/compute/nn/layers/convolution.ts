import type { NamesOf } from "../../../errors/index.ts";
import { numelOf, ops, type Tensor } from "../../tensor/index.ts";
import { type Initializer, uniform } from "../module/initializer.ts";
import { Module } from "../module/module.ts";
import { refuseUnknownOptions } from "../module/module-options.ts";
import { Parameter } from "../module/parameter.ts";

/** Options of a convolution; defaults are torch's. One number applies to every dim. */
export interface ConvolutionOptions {
  /** Distance between two applications of the kernel. Default: 1. */
  readonly stride?: number | readonly number[];
  /** Zeros on both sides of each dim. Default: 0. */
  readonly padding?: number | readonly number[];
  /** Distance between two elements of the kernel. Default: 1. */
  readonly dilation?: number | readonly number[];
  /** Number of groups of channels, each convolved separately. Default: 1. */
  readonly groups?: number;
  /** Whether a bias is added. True */
  readonly bias?: boolean;
  /** Initializes the weight. Default: uniform in ±1/√(weights per output). */
  readonly init?: Initializer;
}

const OPTIONS: NamesOf<ConvolutionOptions> = {
  stride: true,
  padding: true,
  dilation: true,
  groups: true,
  bias: true,
  init: true,
};

/** A convolution over the dims after [batch, channels]; weight [out, in / groups, ...kernel], bias [out]. */
abstract class Convolution extends Module {
  readonly weight: Parameter;
  readonly bias: Parameter | null;
  protected readonly options: ConvolutionOptions;

  constructor(numInputs: number, numOutputs: number, kernel: readonly number[], options: ConvolutionOptions) {
    super();
    refuseUnknownOptions(this, options, OPTIONS);
    const shape = [numOutputs, numInputs / (options.groups ?? 1), ...kernel];
    const bound = 1 / Math.sqrt(numelOf(shape.slice(1)));
    this.weight = new Parameter(shape, options.init ?? uniform(-bound, bound));
    this.bias = options.bias === false ? null : new Parameter([numOutputs], uniform(-bound, bound));
    this.options = options;
  }
}

/** Convolution of [batch, channels, length], as torch.nn.Conv1d. Not `Conv1D`, which is GPT-2's affine map. */
export class Conv1d extends Convolution {
  constructor(numInputs: number, numOutputs: number, kernel: number, options: ConvolutionOptions = {}) {
    super(numInputs, numOutputs, [kernel], options);
  }

  override forward(x: Tensor): Tensor {
    return convolve1d(x, this.weight.tensor, this.bias?.tensor, this.options);
  }
}

/** Convolution of [batch, channels, height, width], as torch.nn.Conv2d. */
export class Conv2d extends Convolution {
  /** @param kernel - [height, width], or one number for both */
  constructor(
    numInputs: number,
    numOutputs: number,
    kernel: number | readonly [number, number],
    options: ConvolutionOptions = {},
  ) {
    super(numInputs, numOutputs, typeof kernel === "number" ? [kernel, kernel] : kernel, options);
  }

  override forward(x: Tensor): Tensor {
    const { stride = 1, padding = 0, dilation = 1, groups = 1 } = this.options;
    const both = (value: number | readonly number[]) => (typeof value === "number" ? [value, value] : value);
    const bias = this.bias?.tensor;
    return ops.conv2d(
      asNarrow(x, this.weight.tensor),
      this.weight.tensor,
      bias,
      both(stride),
      both(padding),
      both(dilation),
      groups,
    );
  }
}

/** Convolves x [B, in, L] with weight [out, in / groups, kernel]. @returns [B, out, L′] */
export function convolve1d(
  x: Tensor,
  weight: Tensor,
  bias: Tensor | undefined,
  { stride = 1, padding = 0, dilation = 1, groups = 1 }: ConvolutionOptions,
): Tensor {
  return ops.conv1d(asNarrow(x, weight), weight, bias, one(stride), one(padding), one(dilation), groups);
}

/** Casts float32 inputs, such as images and audio, to the weight's dtype; under autocast the operator does it. */
function asNarrow(x: Tensor, weight: Tensor): Tensor {
  return x.dtype === "float32" && weight.dtype !== "float32" ? x.to(weight.dtype) : x;
}

function one(value: number | readonly number[]): readonly number[] {
  return typeof value === "number" ? [value] : value;
}
