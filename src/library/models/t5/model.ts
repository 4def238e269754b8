import * as nn from "../../../compute/nn/index.ts";
import { Tensor } from "../../../compute/tensor/index.ts";
import { decoderInput, type Seq2SeqBatch, sourceOf } from "../shift-right.ts";
import type { ModelOutputs, TaskModel } from "../task-model.ts";
import { checkTokenIds, targetsOf } from "../token-ids.ts";
import type { NamedState, StateNaming } from "../weights.ts";
import { type T5Config, t5Config, t5ConfigJson, t5Naming } from "./config.ts";
import { T5DecoderBlock, T5EncoderBlock, type T5Stream } from "./layers.ts";
import { t5Plan } from "./tensor-plan.ts";

// B batch, S positions of the encoder, T of the decoder, D width, V vocabulary.

/** Common base of both stacks. */
abstract class T5Stack<Block extends nn.Module> extends nn.Module {
  readonly dropout: nn.Dropout;
  readonly block: nn.ModuleList<Block>;
  readonly final_layer_norm: nn.RMSNorm;
  /** After the norm; Hugging Face uses one dropout at both ends. */
  readonly final_dropout: nn.Dropout;

  constructor(config: T5Config, blocks: readonly Block[]) {
    super();
    this.dropout = new nn.Dropout(config.dropout_rate);
    this.block = new nn.ModuleList(blocks);
    this.final_layer_norm = new nn.RMSNorm(config.d_model, config.layer_norm_epsilon);
    this.final_dropout = new nn.Dropout(config.dropout_rate);
  }

  protected begin(embedded: Tensor): T5Stream {
    return { x: this.dropout.forward(embedded), bias: undefined };
  }

  protected end({ x }: T5Stream): Tensor {
    return this.final_dropout.forward(this.final_layer_norm.forward(x));
  }
}

/** Encodes a text: every position attends to all others. */
class T5Encoder extends T5Stack<T5EncoderBlock> {
  constructor(config: T5Config) {
    super(
      config,
      Array.from({ length: config.num_layers }, (_, layer) => new T5EncoderBlock(config, layer)),
    );
  }

  /** @param embedded - [B, S, D] @param mask - bool [B, 1, 1, S], or the packed texts @returns [B, S, D] */
  override forward(embedded: Tensor, mask: Tensor | nn.PackedRow | undefined): Tensor {
    let stream = this.begin(embedded);
    const isMask = mask === undefined || mask instanceof Tensor;
    const length = isMask ? (embedded.shape[1] ?? 0) : Math.max(...nn.lengthsOf(mask));
    for (const block of this.block) stream = block.forward(stream, length, mask);
    return this.end(stream);
  }
}

/** Decodes a text: every position attends to those before it, and to all of the encoder's. */
class T5Decoder extends T5Stack<T5DecoderBlock> {
  constructor(config: T5Config) {
    super(
      config,
      Array.from({ length: config.num_decoder_layers }, (_, layer) => new T5DecoderBlock(config, layer)),
    );
  }

  /**
   * @param embedded - [B, T, D]
   * @param states - [B, S, D], the encoder's; null where their keys and values are kept
   * @param masks - bool [B, 1, 1, T] and [B, 1, 1, S]
   * @returns [B, T, D]
   */
  override forward(
    embedded: Tensor,
    states: Tensor | null,
    masks: { readonly own: Tensor | undefined; readonly states: Tensor | undefined },
  ): Tensor {
    let stream = this.begin(embedded);
    const places = { length: embedded.shape[1] ?? 0, first: nn.numPast() };
    for (const block of this.block) stream = block.forward(stream, places, states, masks);
    return this.end(stream);
  }
}

/**
 * T5 for text generation from a text. Parameters have Hugging Face's names.
 * @see Raffel et al. 2020, https://arxiv.org/abs/1910.10683
 */
export class T5ForConditionalGeneration extends nn.Module implements TaskModel {
  /** Positions are relative: texts may have any length. */
  readonly maxPositions: number = Number.POSITIVE_INFINITY;
  readonly packs: boolean = true;
  readonly config: T5Config;
  readonly shared: nn.Embedding;
  readonly encoder: T5Encoder;
  readonly decoder: T5Decoder;
  readonly lm_head: nn.VocabularyHead;

  /** @throws {TroupeError} `MODEL_CONFIG` for fields out of range */
  constructor(fields: Readonly<Record<string, unknown>> = {}) {
    super();
    const config = t5Config(fields);
    const { vocab_size, d_model, initializer_factor, tie_word_embeddings } = config;
    this.config = config;
    this.shared = new nn.Embedding(vocab_size, d_model, nn.normal(0, initializer_factor));
    this.encoder = new T5Encoder(config);
    this.decoder = new T5Decoder(config);
    this.lm_head = new nn.VocabularyHead(d_model, vocab_size, nn.normal(0, initializer_factor));
    if (tie_word_embeddings) this.lm_head.weight = this.shared.weight;
  }

  /** Names of these parameters in Hugging Face's files. */
  get stateNaming(): StateNaming {
    return t5Naming(this.config.tie_word_embeddings);
  }

  get configJson(): NamedState["configJson"] {
    return t5ConfigJson(this.config, "T5ForConditionalGeneration");
  }

  get tensorPlan(): nn.TensorPlan {
    return t5Plan(this.config);
  }

  /**
   * @returns `loss` (float32 scalar, mean nats per token) if the batch has labels, else `logits` [B, T, V]
   * @throws {TroupeError} `MODEL_INPUT`
   */
  override forward(batch: Seq2SeqBatch): ModelOutputs {
    const { inputIds, decoderAttentionMask, labels } = batch;
    const { pad_token_id: padding, decoder_start_token_id: start, vocab_size } = this.config;
    const hint = "pass the decoder's first tokens";
    const decoderIds = decoderInput("T5", batch, { start, padding: padding ?? 0, hint });
    checkTokenIds("T5", decoderIds, vocab_size, this.maxPositions);
    const targets = labels && targetsOf("T5", decoderIds, { targets: labels });
    const source = sourceOf("T5", batch);
    const own = decoderAttentionMask && nn.paddingMask(decoderAttentionMask); // [B, 1, 1, T]
    const [states = null] = nn.madeOnce(this, () => {
      checkTokenIds("T5", inputIds, vocab_size, this.maxPositions);
      return [this.encoder.forward(this.shared.forward(inputIds), source.mask)]; // [B, S, D]
    });
    const masks = { own, states: source.seen };
    const hidden = this.decoder.forward(this.shared.forward(decoderIds), states, masks); // [B, T, D]
    const { scale_decoder_outputs, d_model } = this.config;
    const scaled = scale_decoder_outputs ? hidden.mul(1 / Math.sqrt(d_model)) : hidden;
    if (targets) return { loss: this.lm_head.forward(scaled, { targets }) };
    return { logits: this.lm_head.forward(scaled) };
  }
}
