import { Module, Parameter, VocabularyHead, zeros } from "../../../compute/nn/index.ts";
import type { Tensor } from "../../../compute/tensor/index.ts";
import { initOf } from "../encoder-parts.ts";
import type { LabelledText, ModelOutputs } from "../task-model.ts";
import { EncoderWithHead } from "./encoder-with-head.ts";
import type { HeadConfig, TextEncoderFamily, WordPredictor } from "./text-encoder.ts";

/** Predicts the word at each position: features of the hidden states, and an output layer, which may be tied to the embedding. */
export abstract class WordHead extends Module {
  /** Bias of the words. An output layer that is not tied has its own, and this one is unused. */
  readonly bias: Parameter;
  readonly decoder: VocabularyHead;

  /**
   * @param width - of the features
   * @param embedding - of the words
   */
  constructor(config: HeadConfig, width: number, embedding: Parameter) {
    super();
    const { vocab_size, tie_word_embeddings } = config;
    this.bias = new Parameter([vocab_size], zeros);
    this.decoder = new VocabularyHead(width, vocab_size, initOf(config), { bias: true });
    if (tie_word_embeddings) {
      this.decoder.weight = embedding;
      this.decoder.bias = this.bias;
    }
  }

  /** [B, T, D] → [B, T, width]. */
  protected abstract features(hidden: Tensor): Tensor;

  /** @returns the loss if there are labels [B, T], else logits [B, T, V] */
  override forward(hidden: Tensor, labels: Tensor | undefined): Tensor {
    return this.decoder.forward(this.features(hidden), labels && { targets: labels });
  }
}

/** An encoder for masked language modelling. */
export class MaskedLanguageModel<Config extends HeadConfig> extends EncoderWithHead<Config> {
  readonly #words: WordPredictor;
  readonly #decoder: string;

  /** @throws {TroupeError} `MODEL_CONFIG` */
  constructor(fields: Readonly<Record<string, unknown>>, family: TextEncoderFamily<Config>) {
    super(family, fields, "ForMaskedLM");
    const { name, decoder, build } = family.words;
    this.#decoder = decoder;
    this.#words = build(this.config, this.wordEmbedding);
    Object.assign(this, { [name]: this.#words }); // modules are named by their property
  }

  protected override get decoderName(): string {
    return this.#decoder;
  }

  /**
   * @param batch - a text per row, and `labels`, int64 [B, T]: the original tokens; −100 is left out of the loss
   * @returns `loss`, mean nats per masked token, or `logits` [B, T, V]
   */
  override forward({ labels, ...batch }: LabelledText): ModelOutputs {
    const answer = this.#words.forward(this.encode(batch), labels);
    return labels === undefined ? { logits: answer } : { loss: answer };
  }
}
