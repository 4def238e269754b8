import * as nn from "../../../compute/nn/index.ts";
import { arange, ops, type Tensor } from "../../../compute/tensor/index.ts";
import { EncoderIntermediate, EncoderOutput, EncoderSelfAttention, initOf } from "../encoder-parts.ts";
import { firstOf, Pooler, type Reads, readOfEach } from "../heads/index.ts";
import type { EncoderBatch } from "../task-model.ts";
import { checkTokenIds } from "../token-ids.ts";
import type { BertConfig } from "./config.ts";

// B batch, T positions, D width, I inner width.

/** @returns the positions, int64 [1, T] or [B, T], of token ids [B, T]; packed samples count from their own start */
export type PositionsOf = (inputIds: Tensor, segments: nn.PackedRow | undefined) => Tensor;

/** Adds the embeddings of words, positions and token types. */
export class EncoderEmbeddings extends nn.Module {
  readonly word_embeddings: nn.Embedding;
  readonly position_embeddings: nn.Embedding;
  readonly token_type_embeddings: nn.Embedding;
  readonly dropout: nn.Dropout;

  /**
   * @param width - of the embeddings
   * @param options.paddedPositions - the position of padding, if it has one
   */
  constructor(
    config: Omit<BertConfig, "hidden_size" | "classifier_dropout">,
    width: number,
    options: { readonly paddedPositions?: number } = {},
  ) {
    super();
    const init = initOf(config);
    const padding = config.pad_token_id ?? undefined;
    this.word_embeddings = new nn.Embedding(config.vocab_size, width, init, padding);
    this.position_embeddings = new nn.Embedding(
      config.max_position_embeddings,
      width,
      init,
      options.paddedPositions,
    );
    this.token_type_embeddings = new nn.Embedding(config.type_vocab_size, width, init);
    this.dropout = new nn.Dropout(config.hidden_dropout_prob);
  }

  /** @param positions - int64 [1, T] or [B, T] @returns [B, T, width] */
  override forward(batch: EncoderBatch, positions: Tensor): Tensor {
    return this.dropout.forward(this.sum(batch, positions));
  }

  protected sum({ inputIds, tokenTypeIds }: EncoderBatch, positions: Tensor): Tensor {
    const words = this.word_embeddings.forward(inputIds);
    const types = this.token_type_embeddings.forward(tokenTypeIds ?? ops.zerosLike(inputIds));
    return words.add(types).add(this.position_embeddings.forward(positions)); // [B, T, width]
  }
}

/** The sum of embeddings, normalized. */
export class BertEmbeddings extends EncoderEmbeddings {
  readonly LayerNorm: nn.LayerNorm;

  /** Takes the arguments of {@link EncoderEmbeddings}. */
  constructor(...given: ConstructorParameters<typeof EncoderEmbeddings>) {
    super(...given);
    const [config, width] = given;
    this.LayerNorm = new nn.LayerNorm(width, config.layer_norm_eps);
  }

  override forward(batch: EncoderBatch, positions: Tensor): Tensor {
    return this.dropout.forward(this.LayerNorm.forward(this.sum(batch, positions)));
  }
}

/** The end of a half of a layer: maps to the residual stream's width, adds the stream, and normalizes. */
class BertOutput extends EncoderOutput {
  readonly LayerNorm: nn.LayerNorm;

  constructor(numInputs: number, config: BertConfig) {
    super(numInputs, config);
    this.LayerNorm = new nn.LayerNorm(config.hidden_size, config.layer_norm_eps);
  }

  override forward(x: Tensor, residual: Tensor): Tensor {
    return this.LayerNorm.forward(this.narrowed(x).add(residual)); // [B, T, D]
  }
}

class BertAttention extends nn.Module {
  readonly self: EncoderSelfAttention;
  readonly output: BertOutput;

  constructor(config: BertConfig, reads: Reads) {
    super();
    this.self = new EncoderSelfAttention(config, reads);
    this.output = new BertOutput(config.hidden_size, config);
  }

  override forward(x: Tensor, mask: Tensor | nn.PackedRow | undefined): Tensor {
    return this.output.forward(this.self.forward(x, mask), this.self.answered(x, mask)); // [B, T, D]
  }
}

/** One layer: attention and feed-forward, each added to the residual stream and then normalized. */
class BertLayer extends nn.Module {
  readonly attention: BertAttention;
  readonly intermediate: EncoderIntermediate;
  readonly output: BertOutput;

  constructor(config: BertConfig, reads: Reads) {
    super();
    this.attention = new BertAttention(config, reads);
    this.intermediate = new EncoderIntermediate(config);
    this.output = new BertOutput(config.intermediate_size, config);
  }

  /** @param mask - bool, broadcast to [B, 1, 1, T], true where a position may be attended to; or the packed samples */
  override forward(x: Tensor, mask?: Tensor | nn.PackedRow): Tensor {
    const attended = this.attention.forward(x, mask);
    return this.output.forward(this.intermediate.forward(attended), attended); // [B, T, D]
  }
}

/** A stack of layers in a model. */
export interface EncoderLayers extends nn.Module {
  /** @param mask - bool, broadcast to [B, 1, 1, T] @returns [B, T, D], or the positions that are read */
  forward(x: Tensor, mask: Tensor | nn.PackedRow | undefined): Tensor;
}

class BertEncoder extends nn.Module implements EncoderLayers {
  readonly layer: nn.ModuleList<BertLayer>;
  /** Marks the end of the residual stream. */
  readonly end: nn.Identity;

  constructor(config: BertConfig, reads: Reads) {
    super();
    this.end = new nn.Identity();
    this.layer = new nn.ModuleList(
      readOfEach(config.num_hidden_layers, reads).map((each) => new BertLayer(config, each)),
    );
  }

  override forward(x: Tensor, mask: Tensor | nn.PackedRow | undefined): Tensor {
    let hidden = x;
    for (const layer of this.layer) hidden = layer.forward(hidden, mask);
    return this.end.forward(hidden); // [B, T, D]
  }
}

/** Differences of an encoder from BERT's. */
export interface EncoderOptions {
  /** Positions of the output that are read. */
  readonly reads: Reads;
  /** Whether the first position is pooled for a head. */
  readonly pooled: boolean;
  /** Positions of tokens. Default: from 0. */
  readonly positionsOf?: PositionsOf;
  /** The position of padding. */
  readonly paddedPositions?: number;
  /** Parts with norms at other places than BERT's. */
  readonly parts?: { readonly embeddings: EncoderEmbeddings; readonly encoder: EncoderLayers };
}

/**
 * The stack without a head.
 * @see Devlin et al. 2018, https://arxiv.org/abs/1810.04805
 */
export class BertModel extends nn.Module {
  readonly embeddings: EncoderEmbeddings;
  readonly encoder: EncoderLayers;
  readonly pooler: Pooler | null;
  readonly #config: BertConfig;
  readonly #reads: Reads;
  readonly #positionsOf: PositionsOf;
  readonly #maxPositions: number;

  constructor(config: BertConfig, options: EncoderOptions) {
    super();
    const { parts } = options;
    this.embeddings = parts?.embeddings ?? new BertEmbeddings(config, config.hidden_size, options);
    this.encoder = parts?.encoder ?? new BertEncoder(config, options.reads);
    this.pooler = options.pooled ? new Pooler(config.hidden_size, initOf(config)) : null;
    this.#config = config;
    this.#reads = options.reads;
    this.#maxPositions = config.max_position_embeddings - ((options.paddedPositions ?? -1) + 1);
    this.#positionsOf = options.positionsOf ?? positionsFromZero;
  }

  /**
   * @returns hidden states [B, T, D], or only first positions [B, 1, D], for n packed samples [1, n, D]
   * @throws {TroupeError} `MODEL_INPUT` for ids outside the vocabulary or rows that are too long
   */
  override forward(batch: EncoderBatch): Tensor {
    const { inputIds, attentionMask } = batch;
    const segments = batch.segments && nn.packedRow(batch.segments, inputIds);
    const longest = segments ? Math.max(...nn.lengthsOf(segments)) : inputIds.shape[1];
    checkTokenIds("BertModel", inputIds, this.#config.vocab_size, this.#maxPositions, longest);
    const mask = segments ?? (attentionMask && nn.paddingMask(attentionMask)); // [B, 1, 1, T]
    return this.encoder.forward(this.embeddings.forward(batch, this.#positionsOf(inputIds, segments)), mask);
  }

  /** The first position of forward's output: [B, D]; for packed samples one row each. */
  first(hidden: Tensor, { segments, inputIds }: EncoderBatch): Tensor {
    if (this.#reads === "first") return hidden.flatten(0, 1);
    return firstOf(hidden, segments && nn.packedRow(segments, inputIds));
  }
}

/** 0, 1, 2, … for each row or packed sample: int64 [1, T]. */
export function positionsFromZero(inputIds: Tensor, segments?: nn.PackedRow): Tensor {
  if (segments !== undefined) return nn.positionsIn(segments);
  return arange(inputIds.shape[1] ?? 0, { dtype: "int64" }).unsqueeze(0);
}
