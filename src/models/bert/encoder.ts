import {
  attention,
  Dropout,
  Embedding,
  Identity,
  type Initializer,
  joinHeads,
  LayerNorm,
  Linear,
  lengthsOf,
  Module,
  ModuleList,
  normal,
  type PackedRow,
  packedRow,
  paddingMask,
  positionsIn,
  seenBy,
  splitHeads,
  zeros,
} from "../../nn/index.ts";
import { arange, ops, type Tensor } from "../../tensor/index.ts";
import { Pooler } from "../heads/index.ts";
import type { EncoderBatch } from "../task-model.ts";
import { checkTokenIds } from "../token-ids.ts";
import type { BertConfig } from "./config.ts";

// B batch, T positions, D width, H heads, K head width (D = H·K), I inner width. H, I and, within a layer's halves, T are
// read off the tensors: tensor parallelism gives each rank some of the heads and inner features.

/** @returns the positions, int64 [1, T] or [B, T], of token ids [B, T], from the beginning of each sample where some share the row */
export type PositionsOf = (inputIds: Tensor, segments: PackedRow | undefined) => Tensor;

/** Words, positions and which of two texts they belong to, added and normed. */
export class BertEmbeddings extends Module {
  readonly word_embeddings: Embedding;
  readonly position_embeddings: Embedding;
  readonly token_type_embeddings: Embedding;
  readonly LayerNorm: LayerNorm;
  readonly dropout: Dropout;

  /**
   * @param width - of the embeddings
   * @param options.paddedPositions - the row of positions that stands for padding, if one does
   */
  constructor(
    config: Omit<BertConfig, "hidden_size" | "classifier_dropout">,
    width: number,
    options: { readonly paddedPositions?: number } = {},
  ) {
    super();
    const init = initOf(config);
    const padding = config.pad_token_id ?? undefined;
    this.word_embeddings = new Embedding(config.vocab_size, width, init, padding);
    this.position_embeddings = new Embedding(
      config.max_position_embeddings,
      width,
      init,
      options.paddedPositions,
    );
    this.token_type_embeddings = new Embedding(config.type_vocab_size, width, init);
    this.LayerNorm = new LayerNorm(width, config.layer_norm_eps);
    this.dropout = new Dropout(config.hidden_dropout_prob);
  }

  /** @param positions - int64 [1, T] or [B, T] @returns [B, T, width] */
  override forward({ inputIds, tokenTypeIds }: EncoderBatch, positions: Tensor): Tensor {
    const words = this.word_embeddings.forward(inputIds);
    const types = this.token_type_embeddings.forward(tokenTypeIds ?? ops.zerosLike(inputIds));
    const sum = words.add(types).add(this.position_embeddings.forward(positions)); // [B, T, width]
    return this.dropout.forward(this.LayerNorm.forward(sum));
  }
}

/** What attention reads of a configuration. */
export interface SelfAttentionConfig {
  readonly hidden_size: number;
  readonly num_attention_heads: number;
  readonly attention_probs_dropout_prob: number;
  readonly initializer_range: number;
  /** Whether queries, keys and values have biases; true unless told otherwise. */
  readonly qkv_bias?: boolean;
}

/** Attention of all positions to all, before the heads are mixed. */
export class BertSelfAttention extends Module {
  readonly query: Linear;
  readonly key: Linear;
  readonly value: Linear;
  readonly dropout: Dropout;
  readonly headWidth: number;

  constructor(config: SelfAttentionConfig) {
    super();
    const { hidden_size: width, qkv_bias: bias = true } = config;
    const options = { init: initOf(config), biasInit: zeros, bias };
    this.headWidth = width / config.num_attention_heads;
    this.query = new Linear(width, width, options);
    this.key = new Linear(width, width, options);
    this.value = new Linear(width, width, options);
    this.dropout = new Dropout(config.attention_probs_dropout_prob);
  }

  override forward(x: Tensor, mask?: Tensor | PackedRow): Tensor {
    const [q, k, v] = [this.query, this.key, this.value].map((map) =>
      splitHeads(map.forward(x), this.headWidth),
    ) as [Tensor, Tensor, Tensor]; // [B, H, T, K]
    return joinHeads(attention(q, k, v, { ...seenBy(mask), dropout: this.dropout })); // [B, T, H·K]
  }
}

/** The end of each half of a layer: back to the residual stream's width, added to it, and normed. */
class BertOutput extends Module {
  readonly dense: Linear;
  readonly LayerNorm: LayerNorm;
  readonly dropout: Dropout;

  constructor(numInputs: number, config: BertConfig) {
    super();
    this.dense = linear(numInputs, config.hidden_size, config);
    this.LayerNorm = new LayerNorm(config.hidden_size, config.layer_norm_eps);
    this.dropout = new Dropout(config.hidden_dropout_prob);
  }

  override forward(x: Tensor, residual: Tensor): Tensor {
    return this.LayerNorm.forward(this.dropout.forward(this.dense.forward(x)).add(residual)); // [B, T, D]
  }
}

class BertAttention extends Module {
  readonly self: BertSelfAttention;
  readonly output: BertOutput;

  constructor(config: BertConfig) {
    super();
    this.self = new BertSelfAttention(config);
    this.output = new BertOutput(config.hidden_size, config);
  }

  override forward(x: Tensor, mask: Tensor | PackedRow | undefined): Tensor {
    return this.output.forward(this.self.forward(x, mask), x); // [B, T, D]
  }
}

class BertIntermediate extends Module {
  readonly dense: Linear;

  constructor(config: BertConfig) {
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

/** One layer: attention and feed-forward, each added to the residual stream and then normed. */
export class BertLayer extends Module {
  readonly attention: BertAttention;
  readonly intermediate: BertIntermediate;
  readonly output: BertOutput;

  constructor(config: BertConfig) {
    super();
    this.attention = new BertAttention(config);
    this.intermediate = new BertIntermediate(config);
    this.output = new BertOutput(config.intermediate_size, config);
  }

  /** @param mask - bool, broadcast to [B, H, T, T], true where a position may be seen; or who shares the row */
  override forward(x: Tensor, mask?: Tensor | PackedRow): Tensor {
    const attended = this.attention.forward(x, mask);
    return this.output.forward(this.intermediate.forward(attended), attended); // [B, T, D]
  }
}

class BertEncoder extends Module {
  readonly layer: ModuleList<BertLayer>;
  /** Where the residual stream ends. */
  readonly end: Identity;

  constructor(config: BertConfig) {
    super();
    this.end = new Identity();
    this.layer = new ModuleList(
      Array.from({ length: config.num_hidden_layers }, () => new BertLayer(config)),
    );
  }

  override forward(x: Tensor, mask: Tensor | PackedRow | undefined): Tensor {
    let hidden = x;
    for (const layer of this.layer) hidden = layer.forward(hidden, mask);
    return this.end.forward(hidden); // [B, T, D]
  }
}

/** How an encoder differs from BERT's own. */
export interface EncoderOptions {
  /** Whether the first position is pooled for a head. */
  readonly pooled: boolean;
  /** Where positions are counted otherwise than from 0 on. */
  readonly positionsOf?: PositionsOf;
  /** The row of positions that stands for padding. */
  readonly paddedPositions?: number;
}

/**
 * The stack without a head.
 * @see Devlin et al. 2018, https://arxiv.org/abs/1810.04805
 */
export class BertModel extends Module {
  readonly embeddings: BertEmbeddings;
  readonly encoder: BertEncoder;
  readonly pooler: Pooler | null;
  readonly #config: BertConfig;
  readonly #positionsOf: PositionsOf;
  readonly #maxPositions: number;

  constructor(config: BertConfig, options: EncoderOptions) {
    super();
    this.embeddings = new BertEmbeddings(config, config.hidden_size, options);
    this.encoder = new BertEncoder(config);
    this.pooler = options.pooled ? new Pooler(config.hidden_size, initOf(config)) : null;
    this.#config = config;
    this.#maxPositions = config.max_position_embeddings - ((options.paddedPositions ?? -1) + 1);
    this.#positionsOf = options.positionsOf ?? positionsFromZero;
  }

  /**
   * @returns hidden states [B, T, D]
   * @throws {TroupeError} `MODEL_INPUT` for ids outside the vocabulary or rows that are too long
   */
  override forward(batch: EncoderBatch): Tensor {
    const { inputIds, attentionMask } = batch;
    const segments = batch.segments && packedRow(batch.segments, inputIds);
    const longest = segments ? Math.max(...lengthsOf(segments)) : inputIds.shape[1];
    checkTokenIds("BertModel", inputIds, this.#config.vocab_size, this.#maxPositions, longest);
    const mask = segments ?? (attentionMask && paddingMask(attentionMask)); // [B, 1, 1, T]
    return this.encoder.forward(this.embeddings.forward(batch, this.#positionsOf(inputIds, segments)), mask);
  }

  /** The pooled first position of hidden states: [B, T, D] → [B, D]; of each sample where some share the row. */
  pool(hidden: Tensor, { segments, inputIds }: EncoderBatch): Tensor {
    return (this.pooler as Pooler).forward(hidden, segments && packedRow(segments, inputIds));
  }
}

/** 0, 1, 2, … for each row, or sample of one: int64 [1, T]. */
export function positionsFromZero(inputIds: Tensor, segments?: PackedRow): Tensor {
  if (segments !== undefined) return positionsIn(segments);
  return arange(inputIds.shape[1] ?? 0, { dtype: "int64" }).unsqueeze(0);
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
