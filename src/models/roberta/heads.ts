import {
  Dropout,
  firstPositions,
  LayerNorm,
  Linear,
  Module,
  type PackedRow,
  Parameter,
  VocabularyHead,
  zeros,
} from "../../nn/index.ts";
import type { Tensor } from "../../tensor/index.ts";
import { initOf, linear } from "../bert/encoder.ts";
import { numLabels } from "../config-fields.ts";
import { firstPosition } from "../heads/index.ts";
import type { HeadConfig } from "../text-encoder/index.ts";

/** RoBERTa's masked words: what stood at each position. */
export class RobertaLMHead extends Module {
  /** Of the words. Where the output layer is not tied it has a bias of its own, and this one is of no use. */
  readonly bias: Parameter;
  readonly dense: Linear;
  readonly layer_norm: LayerNorm;
  readonly decoder: VocabularyHead;

  /** @param embedding - of the words, which the output layer is tied to */
  constructor(config: HeadConfig, embedding: Parameter) {
    super();
    const { hidden_size: width, vocab_size, layer_norm_eps } = config;
    const init = initOf(config);
    this.bias = new Parameter([vocab_size], zeros);
    this.dense = new Linear(width, width, { init, biasInit: zeros, activation: "gelu" });
    this.layer_norm = new LayerNorm(width, layer_norm_eps);
    this.decoder = new VocabularyHead(width, vocab_size, init, { bias: true });
    if (config.tie_word_embeddings) {
      this.decoder.weight = embedding;
      this.decoder.bias = this.bias;
    }
  }

  /** @returns the loss where labels [B, T] are given, else logits [B, T, V] */
  override forward(hidden: Tensor, labels: Tensor | undefined): Tensor {
    const features = this.layer_norm.forward(this.dense.forward(hidden)); // [B, T, D]
    return this.decoder.forward(features, labels && { targets: labels });
  }
}

/** RoBERTa's classifier of rows, with a layer of its own in place of a pooler. */
export class RobertaClassificationHead extends Module {
  readonly dense: Linear;
  readonly dropout: Dropout;
  readonly out_proj: Linear;

  constructor(config: HeadConfig, dropout: number) {
    super();
    const { hidden_size: width } = config;
    this.dense = new Linear(width, width, { init: initOf(config), biasInit: zeros, activation: "tanh" });
    this.dropout = new Dropout(dropout);
    this.out_proj = linear(width, numLabels(config), config);
  }

  /** @param hidden - [B, T, D] @param packed - the samples, where they share a row @returns [B, C] */
  override forward(hidden: Tensor, packed?: PackedRow): Tensor {
    const first = packed ? firstPositions(hidden, packed) : firstPosition(hidden); // [B, D]
    const features = this.dense.forward(this.dropout.forward(first)); // [B, D]
    return this.out_proj.forward(this.dropout.forward(features));
  }
}
