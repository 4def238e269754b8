import * as nn from "../../../compute/nn/index.ts";
import type { Tensor } from "../../../compute/tensor/index.ts";
import { decoderInput, type Seq2SeqBatch, sourceOf } from "../shift-right.ts";
import type { ModelOutputs, TaskModel } from "../task-model.ts";
import { checkTokenIds, placesIn } from "../token-ids.ts";
import type { NamedState, StateNaming } from "../weights.ts";
import { type BartConfig, bartConfig, bartConfigJson, bartNaming } from "./config.ts";
import { BartDecoder, BartEncoder, wordsOf } from "./stacks.ts";
import { bartPlan } from "./tensor-plan.ts";

class BartModel extends nn.Module {
  /** Unused if the stacks have their own embeddings; kept for files. */
  readonly shared: nn.Embedding;
  readonly encoder: BartEncoder;
  readonly decoder: BartDecoder;
  readonly #config: BartConfig;

  constructor(config: BartConfig) {
    super();
    this.shared = wordsOf(config);
    this.encoder = new BartEncoder(config);
    this.decoder = new BartDecoder(config);
    this.#config = config;
  }

  override forward(batch: Seq2SeqBatch, written: Tensor): Tensor {
    const { inputIds, decoderAttentionMask, decoderPositionIds: positionIds } = batch;
    const source = sourceOf("BartModel", batch);
    const places = placesIn("BartModel", written, { positionIds });
    const own = decoderAttentionMask && nn.paddingMask(decoderAttentionMask); // [B, 1, 1, T]
    const [states = null] = nn.madeOnce(this, () => {
      const words = this.#words(this.encoder, inputIds, source.length);
      return [this.encoder.forward(words, source)]; // [B, S, D]
    });
    const words = this.#words(this.decoder, written, places.length);
    return this.decoder.forward(words, places.positions, states, { own, source: source.seen }); // [B, T, D]
  }

  #words({ embed_tokens: own }: BartEncoder | BartDecoder, ids: Tensor, length: number): Tensor {
    const { vocab_size, max_position_embeddings, scale_embedding, d_model } = this.#config;
    checkTokenIds("BartModel", ids, vocab_size, max_position_embeddings, length);
    const words = (own ?? this.shared).forward(ids);
    return scale_embedding ? words.mul(Math.sqrt(d_model)) : words;
  }
}

/**
 * BART for text generation from a text; or Blenderbot, which has norms before the halves of its layers, and positions from 0:
 * Megatron-LM's T5.
 * @see Lewis et al. 2019, https://arxiv.org/abs/1910.13461
 * @see Roller et al. 2020, https://arxiv.org/abs/2004.13637
 */
export class BartForConditionalGeneration extends nn.Module implements TaskModel {
  readonly packs: boolean = true;
  readonly config: BartConfig;
  /** Added to the logits; not trained. */
  readonly final_logits_bias: nn.Parameter;
  readonly model: BartModel;
  readonly lm_head: nn.VocabularyHead;

  /** @throws {TroupeError} `MODEL_CONFIG` */
  constructor(fields: Readonly<Record<string, unknown>> = {}) {
    super();
    this.config = bartConfig(fields);
    const { vocab_size, d_model, init_std, tie_word_embeddings } = this.config;
    this.final_logits_bias = new nn.Parameter([1, vocab_size], nn.zeros);
    this.final_logits_bias.trainable = false;
    this.model = new BartModel(this.config);
    this.lm_head = new nn.VocabularyHead(d_model, vocab_size, nn.normal(0, init_std));
    if (tie_word_embeddings) this.lm_head.weight = this.model.shared.weight;
  }

  get maxPositions(): number {
    return this.config.max_position_embeddings;
  }

  get stateNaming(): StateNaming {
    return bartNaming(this.config);
  }

  get configJson(): NamedState["configJson"] {
    return bartConfigJson(this.config);
  }

  get tensorPlan(): nn.TensorPlan {
    return bartPlan(this.config);
  }

  /**
   * @returns `loss`, mean nats per label, if there are labels, else `logits` [B, T, V]
   * @throws {TroupeError} `MODEL_INPUT`
   */
  override forward(batch: Seq2SeqBatch): ModelOutputs {
    const { decoder_start_token_id: start, pad_token_id: padding } = this.config;
    const written = decoderInput("BartForConditionalGeneration", batch, {
      start: Number(start),
      padding: Number(padding),
      hint: "generation starts with decoder_start_token_id",
    });
    const hidden = this.model.forward(batch, written); // [B, T, D]
    const offsets = this.final_logits_bias.tensor.view([-1]); // [V]
    const { labels } = batch;
    if (labels === undefined) return { logits: this.lm_head.forward(hidden, { offsets }) };
    return { loss: this.lm_head.forward(hidden, { offsets, targets: labels }) };
  }
}
