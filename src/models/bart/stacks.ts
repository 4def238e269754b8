import {
  Dropout,
  Embedding,
  Identity,
  LayerDrop,
  LayerNorm,
  Linear,
  Module,
  ModuleList,
  normal,
  numPast,
  zeros,
} from "../../nn/index.ts";
import { arange, type Tensor } from "../../tensor/index.ts";
import { ProjectedAttention } from "../projected-attention.ts";
import type { BartConfig } from "./config.ts";

// B rows, T positions of the decoder, S of the encoder, D width.

/** Rows of positions that stand before the first: fairseq's, which counted its special tokens. */
const OFFSET = 2;

interface BartLayerShape {
  readonly numHeads: number;
  readonly inner: number;
  readonly layerdrop: number;
}

/** What both kinds of layers have: attention of a stack to itself, and a feed-forward half, each normed behind the sum. */
abstract class BartLayer extends Module {
  readonly self_attn: ProjectedAttention;
  readonly self_attn_layer_norm: LayerNorm;
  readonly dropout: Dropout;
  readonly activation_dropout: Dropout;
  readonly fc1: Linear;
  readonly fc2: Linear;
  readonly final_layer_norm: LayerNorm;
  readonly layerdrop: LayerDrop;

  constructor(config: BartConfig, { numHeads, inner, layerdrop }: BartLayerShape) {
    super();
    const { d_model: width, activation_function: activation } = config;
    const init = normal(0, config.init_std);
    this.self_attn = new ProjectedAttention(width, numHeads, { dropout: config.attention_dropout, init });
    this.self_attn_layer_norm = new LayerNorm(width);
    this.dropout = new Dropout(config.dropout);
    this.activation_dropout = new Dropout(config.activation_dropout);
    this.fc1 = new Linear(width, inner, { init, biasInit: zeros, activation });
    this.fc2 = new Linear(inner, width, { init, biasInit: zeros });
    this.final_layer_norm = new LayerNorm(width);
    this.layerdrop = new LayerDrop(layerdrop);
  }

  protected feed(x: Tensor): Tensor {
    const out = this.fc2.forward(this.activation_dropout.forward(this.fc1.forward(x)));
    return this.final_layer_norm.forward(this.dropout.forward(out).add(x));
  }
}

/** A layer of the encoder. */
export class BartEncoderLayer extends BartLayer {
  constructor(config: BartConfig) {
    super(config, {
      numHeads: config.encoder_attention_heads,
      inner: config.encoder_ffn_dim,
      layerdrop: config.encoder_layerdrop,
    });
  }

  override forward(x: Tensor, mask?: Tensor): Tensor {
    const attended = this.dropout.forward(this.self_attn.forward(x, { mask }));
    return this.layerdrop.forward(this.feed(this.self_attn_layer_norm.forward(attended.add(x))), x); // [B, S, D]
  }
}

/** What a decoder sees: bool, of its own positions [B, 1, 1, T] beside the causal rule, and of the encoder's [B, 1, 1, S]. */
export interface BartMasks {
  readonly own: Tensor | undefined;
  readonly source: Tensor | undefined;
}

/** A layer of the decoder, which sees the encoder's states between its halves. */
export class BartDecoderLayer extends BartLayer {
  readonly encoder_attn: ProjectedAttention;
  readonly encoder_attn_layer_norm: LayerNorm;

  constructor(config: BartConfig) {
    super(config, {
      numHeads: config.decoder_attention_heads,
      inner: config.decoder_ffn_dim,
      layerdrop: config.decoder_layerdrop,
    });
    const { d_model: width, decoder_attention_heads: numHeads, attention_dropout: dropout } = config;
    this.encoder_attn = new ProjectedAttention(width, numHeads, {
      dropout,
      init: normal(0, config.init_std),
    });
    this.encoder_attn_layer_norm = new LayerNorm(width);
  }

  /** @param source - [B, S, D], the encoder's states */
  override forward(x: Tensor, source: Tensor, masks: BartMasks): Tensor {
    const attended = this.dropout.forward(this.self_attn.forward(x, { causal: true, mask: masks.own }));
    const own = this.self_attn_layer_norm.forward(attended.add(x)); // [B, T, D]
    const crossed = this.dropout.forward(this.encoder_attn.forward(own, { source, mask: masks.source }));
    return this.layerdrop.forward(this.feed(this.encoder_attn_layer_norm.forward(crossed.add(own))), x);
  }
}

/** Positions added to words, normed; words that both stacks share come from outside. */
abstract class BartStack<Layer extends Module> extends Module {
  /** Words of its own; null where both share theirs. */
  readonly embed_tokens: Embedding | null;
  readonly embed_positions: Embedding;
  readonly layers: ModuleList<Layer>;
  readonly layernorm_embedding: LayerNorm;
  readonly dropout: Dropout;
  /** Where the residual stream ends. */
  readonly end: Identity;

  constructor(config: BartConfig, layers: readonly Layer[]) {
    super();
    const { d_model: width, max_position_embeddings: numPositions } = config;
    this.embed_tokens = config.tie_word_embeddings ? null : wordsOf(config);
    this.embed_positions = new Embedding(numPositions + OFFSET, width, normal(0, config.init_std));
    this.layers = new ModuleList(layers);
    this.layernorm_embedding = new LayerNorm(width);
    this.dropout = new Dropout(config.dropout);
    this.end = new Identity();
  }

  protected begin(words: Tensor): Tensor {
    const positions = arange(words.shape[1] ?? 0, { dtype: "int64" }).add(OFFSET + numPast()); // [T]
    return this.dropout.forward(
      this.layernorm_embedding.forward(words.add(this.embed_positions.forward(positions))),
    );
  }
}

/** Reads a row both ways. */
export class BartEncoder extends BartStack<BartEncoderLayer> {
  constructor(config: BartConfig) {
    super(
      config,
      Array.from({ length: config.encoder_layers }, () => new BartEncoderLayer(config)),
    );
  }

  /** @param words - [B, S, D] @returns [B, S, D] */
  override forward(words: Tensor, mask?: Tensor): Tensor {
    let hidden = this.begin(words);
    for (const layer of this.layers) hidden = layer.forward(hidden, mask);
    return this.end.forward(hidden);
  }
}

/** Writes a row, position by position, beside what the encoder has read. */
export class BartDecoder extends BartStack<BartDecoderLayer> {
  constructor(config: BartConfig) {
    super(
      config,
      Array.from({ length: config.decoder_layers }, () => new BartDecoderLayer(config)),
    );
  }

  /** @param words - [B, T, D] @param source - [B, S, D] @returns [B, T, D] */
  override forward(words: Tensor, source: Tensor, masks: BartMasks): Tensor {
    let hidden = this.begin(words);
    for (const layer of this.layers) hidden = layer.forward(hidden, source, masks);
    return this.end.forward(hidden);
  }
}

/** A table of words. */
export function wordsOf({ vocab_size, d_model, init_std, pad_token_id }: BartConfig): Embedding {
  return new Embedding(vocab_size, d_model, normal(0, init_std), pad_token_id ?? undefined);
}
