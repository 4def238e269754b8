import * as nn from "../../../compute/nn/index.ts";
import type { Tensor } from "../../../compute/tensor/index.ts";
import { inputError } from "../token-ids.ts";
import type { SpeechConfig, Wav2Vec2Config } from "./config.ts";

// B recordings, N samples, C channels, T frames, D width.

/** A convolution over time with an optional norm. */
class ConvLayer extends nn.Module {
  readonly conv: nn.Conv1d;
  readonly layer_norm: nn.GroupNorm | nn.LayerNorm | null;
  readonly #activation: (x: Tensor) => Tensor;

  constructor(config: SpeechConfig, index: number) {
    super();
    const { conv_dim, conv_kernel, conv_stride, conv_bias: bias, feat_extract_norm } = config;
    const width = conv_dim[index] ?? 0;
    const numInputs = index === 0 ? 1 : (conv_dim[index - 1] ?? 0);
    const kernel = conv_kernel[index] ?? 0;
    const init = nn.normal(0, Math.sqrt(2 / (numInputs * kernel))); // He et al. 2015
    this.conv = new nn.Conv1d(numInputs, width, kernel, { stride: conv_stride[index] ?? 1, bias, init });
    this.layer_norm =
      feat_extract_norm === "layer"
        ? new nn.LayerNorm(width)
        : index === 0
          ? new nn.GroupNorm(width, width)
          : null;
    this.#activation = nn.activations[config.feat_extract_activation];
  }

  /** @param x - [B, C, N] */
  override forward(x: Tensor): Tensor {
    return this.#activation(this.#normed(this.conv.forward(x))); // [B, C', N']
  }

  #normed(x: Tensor): Tensor {
    const { layer_norm: norm } = this;
    if (norm === null) return x;
    if (norm instanceof nn.GroupNorm) return norm.forward(x);
    // In the next convolution's layout: activations whose input and gradient have different layouts are not vectorized.
    return norm.forward(x.transpose(1, 2)).transpose(1, 2).contiguous();
  }
}

/** Converts samples to frames. */
export class FeatureExtractor extends nn.Module {
  readonly conv_layers: nn.ModuleList<ConvLayer>;

  constructor(config: SpeechConfig) {
    super();
    this.conv_layers = new nn.ModuleList(config.conv_dim.map((_, index) => new ConvLayer(config, index)));
  }

  /** @param samples - [B, N] @returns [B, T, C] */
  override forward(samples: Tensor): Tensor {
    let x = samples.unsqueeze(1); // [B, 1, N]
    for (const layer of this.conv_layers) x = layer.forward(x);
    return x.transpose(1, 2);
  }
}

/** Maps frames to the layers' width. */
export class FeatureProjection extends nn.Module {
  readonly layer_norm: nn.LayerNorm;
  readonly projection: nn.Linear;
  readonly dropout: nn.Dropout;

  constructor(config: SpeechConfig) {
    super();
    const channels = config.conv_dim.at(-1) ?? 0;
    this.layer_norm = new nn.LayerNorm(channels, config.layer_norm_eps);
    this.projection = new nn.Linear(channels, config.hidden_size);
    this.dropout = new nn.Dropout(config.feat_proj_dropout);
  }

  /** @returns `projected` [B, T, D], and its normalized input `normed` [B, T, C] */
  override forward(frames: Tensor): { readonly normed: Tensor; readonly projected: Tensor } {
    const normed = this.layer_norm.forward(frames);
    return { normed, projected: this.dropout.forward(this.projection.forward(normed)) };
  }
}

/** Positions of frames by a wide convolution. */
export class PositionalConvolution extends nn.Module {
  readonly conv: nn.WeightNormConv1d;
  readonly #activation: (x: Tensor) => Tensor;

  constructor(config: Wav2Vec2Config) {
    super();
    const {
      hidden_size: width,
      num_conv_pos_embeddings: kernel,
      num_conv_pos_embedding_groups: groups,
    } = config;
    const init = nn.normal(0, 2 * Math.sqrt(1 / (kernel * width)));
    this.conv = new nn.WeightNormConv1d(width, width, kernel, 2, {
      padding: Math.floor(kernel / 2),
      groups,
      init,
    });
    this.#activation = nn.activations[config.feat_extract_activation];
  }

  /** [B, T, D] → [B, T, D]. */
  override forward(x: Tensor): Tensor {
    const length = x.shape[1] ?? 0;
    const convolved = this.conv.forward(x.transpose(1, 2)).narrow(2, 0, length); // an even kernel adds a frame
    return this.#activation(convolved.transpose(1, 2).contiguous());
  }
}

/** Number of frames for a number of samples: int64 [B] → int64 [B]. */
export function numFrames(
  numSamples: Tensor,
  { conv_kernel, conv_stride }: Pick<SpeechConfig, "conv_kernel" | "conv_stride">,
): Tensor {
  return conv_kernel.reduce(
    (length, kernel, index) =>
      length
        .sub(kernel)
        .floorDivide(conv_stride[index] ?? 1)
        .add(1),
    numSamples,
  );
}

/**
 * @param where - name of the model, for the error
 * @throws {TroupeError} `MODEL_INPUT` for recordings that are too short for one frame
 */
export function checkSamples(
  where: string,
  { shape, ndim }: Tensor,
  { conv_kernel, conv_stride }: Pick<SpeechConfig, "conv_kernel" | "conv_stride">,
): void {
  const least = conv_kernel.reduceRight(
    (length, kernel, index) => (length - 1) * (conv_stride[index] ?? 1) + kernel,
    1,
  );
  if (ndim === 2 && (shape[1] ?? 0) >= least) return;
  throw inputError(where, `samples of [batch, at least ${least}]`, `[${shape}]`, { shape, least });
}

/** Number of frames after the adapter, if any: int64 [B] → int64 [B]. */
export function numAdapted(
  frames: Tensor,
  {
    add_adapter,
    num_adapter_layers,
    adapter_stride,
  }: Pick<SpeechConfig, "add_adapter" | "num_adapter_layers" | "adapter_stride">,
): Tensor {
  let left = frames;
  for (let layer = 0; add_adapter && layer < num_adapter_layers; layer++)
    left = left.sub(1).floorDivide(adapter_stride).add(1);
  return left;
}
