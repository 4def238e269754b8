import * as nn from "../../../compute/nn/index.ts";
import type { Tensor } from "../../../compute/tensor/index.ts";
import { ProjectedAttention } from "../projected-attention.ts";
import type { PlacedIds } from "../token-ids.ts";
import type { BartConfig } from "./config.ts";

// B rows, T positions of the decoder, S of the encoder, D width.

/** Rows of the table before the first position: BART has two, for fairseq's special tokens. */
const firstPositions = { bart: 2, blenderbot: 0 } as const;

/** Whether norms come before the halves of a layer, and after the last layer; else after each half and the embedding. */
const normsFirst = ({ model_type }: BartConfig): boolean => model_type === "blenderbot";

interface BartLayerShape {
  readonly numHeads: number;
  readonly inner: number;
  readonly layerdrop: number;
}

/** Common base of both kinds of layers: self-attention and a feed-forward half. */
abstract class BartLayer extends nn.Module {
  readonly self_attn: ProjectedAttention;
  readonly self_attn_layer_norm: nn.LayerNorm;
  readonly dropout: nn.Dropout;
  readonly activation_dropout: nn.Dropout;
  readonly fc1: nn.Linear;
  readonly fc2: nn.Linear;
  readonly final_layer_norm: nn.LayerNorm;
  readonly layerdrop: nn.LayerDrop;
  readonly #normsFirst: boolean;

  constructor(config: BartConfig, { numHeads, inner, layerdrop }: BartLayerShape) {
    super();
    const { d_model: width, activation_function: activation } = config;
    const init = nn.normal(0, config.init_std);
    this.self_attn = new ProjectedAttention(width, numHeads, { dropout: config.attention_dropout, init });
    this.self_attn_layer_norm = new nn.LayerNorm(width);
    this.dropout = new nn.Dropout(config.dropout);
    this.activation_dropout = new nn.Dropout(config.activation_dropout);
    this.fc1 = new nn.Linear(width, inner, { init, biasInit: nn.zeros, activation });
    this.fc2 = new nn.Linear(inner, width, { init, biasInit: nn.zeros });
    this.final_layer_norm = new nn.LayerNorm(width);
    this.layerdrop = new nn.LayerDrop(layerdrop);
    this.#normsFirst = normsFirst(config);
  }

  /** Adds a half's output to the stream, with the norm after the sum or before the half. */
  protected half(x: Tensor, norm: nn.LayerNorm, compute: (x: Tensor) => Tensor): Tensor {
    if (this.#normsFirst) return this.dropout.forward(compute(norm.forward(x))).add(x);
    return norm.forward(this.dropout.forward(compute(x)).add(x));
  }

  protected feed(stream: Tensor): Tensor {
    return this.half(stream, this.final_layer_norm, (x) =>
      this.fc2.forward(this.activation_dropout.forward(this.fc1.forward(x))),
    );
  }
}

/** A layer of the encoder. */
class BartEncoderLayer extends BartLayer {
  constructor(config: BartConfig) {
    super(config, {
      numHeads: config.encoder_attention_heads,
      inner: config.encoder_ffn_dim,
      layerdrop: config.encoder_layerdrop,
    });
  }

  override forward(x: Tensor, mask?: Tensor | nn.PackedRow): Tensor {
    const attended = this.half(x, this.self_attn_layer_norm, (own) => this.self_attn.forward(own, { mask }));
    return this.layerdrop.forward(this.feed(attended), x); // [B, S, D]
  }
}

/** Masks of a decoder: bool, of its own positions [B, 1, 1, T], in addition to the causal mask, and of the encoder's [B, 1, 1, S]. */
export interface BartMasks {
  readonly own: Tensor | undefined;
  readonly source: Tensor | undefined;
}

/** A layer of the decoder, with cross-attention between its halves. */
class BartDecoderLayer extends BartLayer {
  readonly encoder_attn: ProjectedAttention;
  readonly encoder_attn_layer_norm: nn.LayerNorm;

  constructor(config: BartConfig) {
    super(config, {
      numHeads: config.decoder_attention_heads,
      inner: config.decoder_ffn_dim,
      layerdrop: config.decoder_layerdrop,
    });
    const { d_model: width, decoder_attention_heads: numHeads, attention_dropout: dropout } = config;
    this.encoder_attn = new ProjectedAttention(width, numHeads, {
      dropout,
      init: nn.normal(0, config.init_std),
    });
    this.encoder_attn_layer_norm = new nn.LayerNorm(width);
  }

  /** @param source - [B, S, D], the encoder's states; null where their keys and values are kept */
  override forward(x: Tensor, source: Tensor | null, masks: BartMasks): Tensor {
    const attended = this.half(x, this.self_attn_layer_norm, (own) =>
      this.self_attn.forward(own, { causal: true, mask: masks.own }),
    ); // [B, T, D]
    const crossed = this.half(attended, this.encoder_attn_layer_norm, (own) =>
      this.encoder_attn.forward(own, { source, mask: masks.source }),
    );
    return this.layerdrop.forward(this.feed(crossed), x);
  }
}

/** A stack with positions; a shared embedding is passed in from outside. */
abstract class BartStack<Layer extends nn.Module> extends nn.Module {
  /** The stack's own embedding; null if it is shared. */
  readonly embed_tokens: nn.Embedding | null;
  readonly embed_positions: nn.Embedding;
  readonly layers: nn.ModuleList<Layer>;
  readonly layernorm_embedding: nn.LayerNorm | null;
  /** After all layers, if norms come before the halves. */
  readonly layer_norm: nn.LayerNorm | null;
  readonly dropout: nn.Dropout;
  /** Marks the end of the residual stream. */
  readonly end: nn.Identity;
  readonly #firstPosition: number;

  constructor(config: BartConfig, layers: readonly Layer[]) {
    super();
    const { d_model: width, max_position_embeddings: numPositions } = config;
    this.#firstPosition = firstPositions[config.model_type];
    this.embed_tokens = config.tie_word_embeddings ? null : wordsOf(config);
    this.embed_positions = new nn.Embedding(
      numPositions + this.#firstPosition,
      width,
      nn.normal(0, config.init_std),
    );
    this.layers = new nn.ModuleList(layers);
    this.layernorm_embedding = normsFirst(config) ? null : new nn.LayerNorm(width);
    this.layer_norm = normsFirst(config) ? new nn.LayerNorm(width) : null;
    this.dropout = new nn.Dropout(config.dropout);
    this.end = new nn.Identity();
  }

  /** @param positions - [1, T] of tokens of several texts. Default: those of this pass */
  protected begin(words: Tensor, positions = nn.positionsHere(words.shape[1] ?? 0)): Tensor {
    const placed = words.add(this.embed_positions.forward(positions.add(this.#firstPosition)));
    return this.dropout.forward(this.layernorm_embedding?.forward(placed) ?? placed);
  }

  protected finish(hidden: Tensor): Tensor {
    return this.end.forward(this.layer_norm?.forward(hidden) ?? hidden);
  }
}

/** Encodes a row, attending in both directions. */
export class BartEncoder extends BartStack<BartEncoderLayer> {
  constructor(config: BartConfig) {
    super(
      config,
      Array.from({ length: config.encoder_layers }, () => new BartEncoderLayer(config)),
    );
  }

  /** @param words - [B, S, D] @returns [B, S, D] */
  override forward(words: Tensor, { mask, positions }: Pick<PlacedIds, "mask" | "positions">): Tensor {
    let hidden = this.begin(words, positions);
    for (const layer of this.layers) hidden = layer.forward(hidden, mask);
    return this.finish(hidden);
  }
}

/** Decodes a row from left to right, attending to the encoder's states. */
export class BartDecoder extends BartStack<BartDecoderLayer> {
  constructor(config: BartConfig) {
    super(
      config,
      Array.from({ length: config.decoder_layers }, () => new BartDecoderLayer(config)),
    );
  }

  /**
   * @param words - [B, T, D] @param positions - [1, T] of tokens of several texts
   * @param source - [B, S, D]; null where its keys and values are kept
   * @returns [B, T, D]
   */
  override forward(
    words: Tensor,
    positions: Tensor | undefined,
    source: Tensor | null,
    masks: BartMasks,
  ): Tensor {
    let hidden = this.begin(words, positions);
    for (const layer of this.layers) hidden = layer.forward(hidden, source, masks);
    return this.finish(hidden);
  }
}

/** An embedding of words. */
export function wordsOf({ vocab_size, d_model, init_std, pad_token_id }: BartConfig): nn.Embedding {
  return new nn.Embedding(vocab_size, d_model, nn.normal(0, init_std), pad_token_id ?? undefined);
}
