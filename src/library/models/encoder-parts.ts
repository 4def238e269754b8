import {
  type ActivationName,
  attention,
  Dropout,
  type Initializer,
  joinHeads,
  Linear,
  Module,
  normal,
  type PackedRow,
  seenBy,
  splitHeads,
  zeros,
} from "../../compute/nn/index.ts";
import type { Tensor } from "../../compute/tensor/index.ts";
import { FirstPositions, type Reads } from "./heads/index.ts";

// What the layers of BERT, Megatron's BERT and ViT are made of, wherever their norms stand.
// B batch, T positions, D width, H heads, K head width (D = H·K), I inner width. H, I and, within a layer's halves, T are
// read off the tensors: tensor parallelism gives each rank some of the heads and inner features.

/** What attention reads of a configuration. */
export interface SelfAttentionConfig {
  readonly hidden_size: number;
  readonly num_attention_heads: number;
  readonly attention_probs_dropout_prob: number;
  readonly initializer_range: number;
  /** Whether queries, keys and values have biases. Default: true. */
  readonly qkv_bias?: boolean;
}

/** Attention to all positions, before the heads are mixed: of all, or of each sample's first. */
export class EncoderSelfAttention extends Module {
  readonly query: Linear;
  readonly key: Linear;
  readonly value: Linear;
  readonly dropout: Dropout;
  readonly first: FirstPositions | null;
  readonly headWidth: number;

  /** @param reads - which positions are read of what it answers */
  constructor(config: SelfAttentionConfig, reads: Reads = "all") {
    super();
    const { hidden_size: width, qkv_bias: bias = true } = config;
    const options = { init: initOf(config), biasInit: zeros, bias };
    this.headWidth = width / config.num_attention_heads;
    this.query = new Linear(width, width, options);
    this.key = new Linear(width, width, options);
    this.value = new Linear(width, width, options);
    this.dropout = new Dropout(config.attention_probs_dropout_prob);
    this.first = reads === "first" ? new FirstPositions() : null;
  }

  /** @param mask - bool, broadcast to [B, 1, 1, T], true where a position may be seen; or who shares the row */
  override forward(x: Tensor, mask?: Tensor | PackedRow): Tensor {
    return selfAttention(this, this.dropout, x, mask);
  }

  /** The positions of a stream beside it, [B, T, D], that it answers for. */
  answered(stream: Tensor, mask?: Tensor | PackedRow): Tensor {
    return this.first?.forward(stream, mask) ?? stream;
  }
}

/** The maps of an attention whose queries, keys and values are one stream's. */
export interface SelfAttentionMaps {
  readonly query: Linear;
  readonly key: Linear;
  readonly value: Linear;
  readonly headWidth: number;
  /** Where queries are of first positions alone. */
  readonly first?: FirstPositions | null;
}

/**
 * Attention to all positions, before the heads are mixed: [B, T, D] → [B, T, H·K], or of the positions that have queries.
 * @param dropout - of the attention weights
 * @param mask - bool, broadcast to [B, 1, 1, T], true where a position may be seen; or who shares the row
 */
export function selfAttention(
  { query, key, value, headWidth, first }: SelfAttentionMaps,
  dropout: Dropout,
  x: Tensor,
  mask: Tensor | PackedRow | undefined,
): Tensor {
  const features = first
    ? [query.forward(first.forward(x, mask)), ...Linear.each([key, value], x)]
    : Linear.each([query, key, value], x); // [B, T, H·K] each
  const [q, k, v] = features.map((part) => splitHeads(part, headWidth)) as [Tensor, Tensor, Tensor]; // [B, H, T, K]
  return joinHeads(attention(q, k, v, { ...seenBy(mask), dropout }));
}

/** What the maps of a layer's halves read of a configuration. */
export interface EncoderHalfConfig {
  readonly hidden_size: number;
  readonly intermediate_size: number;
  readonly hidden_act: ActivationName;
  readonly hidden_dropout_prob: number;
  readonly initializer_range: number;
}

/** The first map of a feed-forward half, and its activation. */
export class EncoderIntermediate extends Module {
  readonly dense: Linear;

  constructor(config: EncoderHalfConfig) {
    super();
    const { hidden_size, intermediate_size, hidden_act: activation } = config;
    this.dense = new Linear(hidden_size, intermediate_size, {
      init: initOf(config),
      biasInit: zeros,
      activation,
    });
  }

  override forward(x: Tensor): Tensor {
    return this.dense.forward(x); // [B, T, I]
  }
}

/** The end of a half of a layer: back to the residual stream's width. What is done with the stream is a family's own. */
export abstract class EncoderOutput extends Module {
  readonly dense: Linear;
  readonly dropout: Dropout;

  constructor(numInputs: number, config: EncoderHalfConfig) {
    super();
    this.dense = linear(numInputs, config.hidden_size, config);
    this.dropout = new Dropout(config.hidden_dropout_prob);
  }

  protected narrowed(x: Tensor): Tensor {
    return this.dropout.forward(this.dense.forward(x)); // [B, T, D]
  }
}

/** The same, of which a layer itself adds the answer to the stream. */
export class PlainOutput extends EncoderOutput {
  override forward(x: Tensor): Tensor {
    return this.narrowed(x);
  }
}

/** How weights begin. */
export function initOf({ initializer_range }: { readonly initializer_range: number }): Initializer {
  return normal(0, initializer_range);
}

/** An affine map that begins as BERT's do. */
export function linear(
  numInputs: number,
  numOutputs: number,
  config: { readonly initializer_range: number },
): Linear {
  return new Linear(numInputs, numOutputs, { init: initOf(config), biasInit: zeros });
}
