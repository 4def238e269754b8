import * as nn from "../../compute/nn/index.ts";
import type { Tensor } from "../../compute/tensor/index.ts";
import { FirstPositions, type Reads } from "./heads/index.ts";

// Parts of the layers of BERT, Megatron's BERT and ViT, independent of their norms' places.
// B batch, T positions, D width, H heads, K head width (D = H·K), I inner width. H, I and, in a layer's halves, T come from the
// tensors' shapes: tensor parallelism gives each rank some of the heads and inner features.

/** The fields of a configuration that attention needs. */
export interface SelfAttentionConfig {
  readonly hidden_size: number;
  readonly num_attention_heads: number;
  readonly attention_probs_dropout_prob: number;
  readonly initializer_range: number;
  /** Whether queries, keys and values have biases. Default: true. */
  readonly qkv_bias?: boolean;
}

/** Attention to all positions, before the output map: of all positions, or of each sample's first. */
export class EncoderSelfAttention extends nn.Module {
  readonly query: nn.Linear;
  readonly key: nn.Linear;
  readonly value: nn.Linear;
  readonly dropout: nn.Dropout;
  readonly first: FirstPositions | null;
  readonly headWidth: number;

  /** @param reads - positions of the output that are read */
  constructor(config: SelfAttentionConfig, reads: Reads = "all") {
    super();
    const { hidden_size: width, qkv_bias: bias = true } = config;
    this.headWidth = width / config.num_attention_heads;
    this.query = linear(width, width, config, { bias });
    this.key = linear(width, width, config, { bias });
    this.value = linear(width, width, config, { bias });
    this.dropout = new nn.Dropout(config.attention_probs_dropout_prob);
    this.first = reads === "first" ? new FirstPositions() : null;
  }

  /** @param mask - bool, broadcast to [B, 1, 1, T], true where a position may be attended to; or the packed samples */
  override forward(x: Tensor, mask?: Tensor | nn.PackedRow): Tensor {
    return selfAttention(this, this.dropout, x, mask);
  }

  /** The positions of a stream [B, T, D] that the output has. */
  answered(stream: Tensor, mask?: Tensor | nn.PackedRow): Tensor {
    return this.first?.forward(stream, mask) ?? stream;
  }
}

/** The maps of self-attention. */
export interface SelfAttentionMaps {
  readonly query: nn.Linear;
  readonly key: nn.Linear;
  readonly value: nn.Linear;
  readonly headWidth: number;
  /** Selects the positions of queries, if only first ones are read. */
  readonly first?: FirstPositions | null;
}

/**
 * Attention to all positions, before the output map: [B, T, D] → [B, T, H·K], or only positions with queries.
 * @param dropout - of the attention weights
 * @param mask - bool, broadcast to [B, 1, 1, T], true where a position may be attended to; or the packed samples
 */
export function selfAttention(
  { query, key, value, headWidth, first }: SelfAttentionMaps,
  dropout: nn.Dropout,
  x: Tensor,
  mask: Tensor | nn.PackedRow | undefined,
): Tensor {
  const features = first
    ? [query.forward(first.forward(x, mask)), ...nn.Linear.each([key, value], x)]
    : nn.Linear.each([query, key, value], x); // [B, T, H·K] each
  const [q, k, v] = features.map((part) => nn.splitHeads(part, headWidth)) as [Tensor, Tensor, Tensor]; // [B, H, T, K]
  return nn.joinHeads(nn.attention(q, k, v, { ...nn.seenBy(mask), dropout }));
}

/** The fields of a configuration that a layer's halves need. */
export interface EncoderHalfConfig {
  readonly hidden_size: number;
  readonly intermediate_size: number;
  readonly hidden_act: nn.ActivationName;
  readonly hidden_dropout_prob: number;
  readonly initializer_range: number;
}

/** The first map of a feed-forward half, and its activation. */
export class EncoderIntermediate extends nn.Module {
  readonly dense: nn.Linear;

  constructor(config: EncoderHalfConfig) {
    super();
    const { hidden_size, intermediate_size, hidden_act: activation } = config;
    this.dense = linear(hidden_size, intermediate_size, config, { activation });
  }

  override forward(x: Tensor): Tensor {
    return this.dense.forward(x); // [B, T, I]
  }
}

/** The end of a half of a layer: maps to the residual stream's width. The family adds the stream. */
export abstract class EncoderOutput extends nn.Module {
  readonly dense: nn.Linear;
  readonly dropout: nn.Dropout;

  constructor(numInputs: number, config: EncoderHalfConfig) {
    super();
    this.dense = linear(numInputs, config.hidden_size, config);
    this.dropout = new nn.Dropout(config.hidden_dropout_prob);
  }

  protected narrowed(x: Tensor): Tensor {
    return this.dropout.forward(this.dense.forward(x)); // [B, T, D]
  }
}

/** An {@link EncoderOutput} whose layer adds the stream. */
export class PlainOutput extends EncoderOutput {
  override forward(x: Tensor): Tensor {
    return this.narrowed(x);
  }
}

/** Initializer of weights. */
export function initOf({ initializer_range }: { readonly initializer_range: number }): nn.Initializer {
  return nn.normal(0, initializer_range);
}

/** An affine map with normal weights; its bias starts at 0. */
export function linear(
  numInputs: number,
  numOutputs: number,
  config: { readonly initializer_range: number },
  options: { readonly bias?: boolean; readonly activation?: nn.ActivationName } = {},
): nn.Linear {
  return new nn.Linear(numInputs, numOutputs, { init: initOf(config), biasInit: nn.zeros, ...options });
}
