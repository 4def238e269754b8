import * as nn from "../../../compute/nn/index.ts";
import type { Tensor } from "../../../compute/tensor/index.ts";
import { encoderNaming } from "../bert/config.ts";
import { BertEmbeddings, positionsFromZero } from "../bert/encoder.ts";
import { configJsonOf } from "../config-fields.ts";
import { linear, selfAttention } from "../encoder-parts.ts";
import { firstOf } from "../heads/index.ts";
import { ofFamily } from "../of-family.ts";
import type { EncoderBatch } from "../task-model.ts";
import {
  MaskedLanguageModel,
  QuestionAnswerer,
  SequenceClassifier,
  type TextEncoderFamily,
  TokenClassifier,
  WordHead,
} from "../text-encoder/index.ts";
import { checkTokenIds } from "../token-ids.ts";
import { type AlbertConfig, albertConfig } from "./config.ts";
import { albertPlan } from "./tensor-plan.ts";

// B batch, T positions, E embedding width, D width, H heads, K head width, I inner width.

class AlbertAttention extends nn.Module {
  readonly query: nn.Linear;
  readonly key: nn.Linear;
  readonly value: nn.Linear;
  readonly attention_dropout: nn.Dropout;
  readonly dense: nn.Linear;
  readonly output_dropout: nn.Dropout;
  readonly LayerNorm: nn.LayerNorm;
  readonly headWidth: number;

  constructor(config: AlbertConfig) {
    super();
    const { hidden_size: width } = config;
    this.headWidth = width / config.num_attention_heads;
    this.query = linear(width, width, config);
    this.key = linear(width, width, config);
    this.value = linear(width, width, config);
    this.attention_dropout = new nn.Dropout(config.attention_probs_dropout_prob);
    this.dense = linear(width, width, config);
    this.output_dropout = new nn.Dropout(config.hidden_dropout_prob);
    this.LayerNorm = new nn.LayerNorm(width, config.layer_norm_eps);
  }

  override forward(x: Tensor, mask: Tensor | undefined): Tensor {
    const mixed = selfAttention(this, this.attention_dropout, x, mask); // [B, T, H·K]
    return this.LayerNorm.forward(this.output_dropout.forward(this.dense.forward(mixed)).add(x)); // [B, T, D]
  }
}

class AlbertLayer extends nn.Module {
  readonly full_layer_layer_norm: nn.LayerNorm;
  readonly attention: AlbertAttention;
  readonly ffn: nn.Linear;
  readonly ffn_output: nn.Linear;

  constructor(config: AlbertConfig) {
    super();
    const { hidden_size: width, intermediate_size: inner, hidden_act: activation } = config;
    this.full_layer_layer_norm = new nn.LayerNorm(width, config.layer_norm_eps);
    this.attention = new AlbertAttention(config);
    this.ffn = linear(width, inner, config, { activation });
    this.ffn_output = linear(inner, width, config);
  }

  override forward(x: Tensor, mask: Tensor | undefined): Tensor {
    const attended = this.attention.forward(x, mask);
    return this.full_layer_layer_norm.forward(
      this.ffn_output.forward(this.ffn.forward(attended)).add(attended), // [B, T, D]
    );
  }
}

/** A group of layers whose parameters are used at several places of the stack. */
class AlbertLayerGroup extends nn.Module {
  readonly albert_layers: nn.ModuleList<AlbertLayer>;

  constructor(config: AlbertConfig) {
    super();
    this.albert_layers = nn.ModuleList.of(config.inner_group_num, () => new AlbertLayer(config));
  }

  override forward(x: Tensor, mask?: Tensor): Tensor {
    let hidden = x;
    for (const layer of this.albert_layers) hidden = layer.forward(hidden, mask);
    return hidden; // [B, T, D]
  }
}

class AlbertTransformer extends nn.Module {
  readonly embedding_hidden_mapping_in: nn.Linear;
  readonly albert_layer_groups: nn.ModuleList<AlbertLayerGroup>;
  /** Marks the end of the residual stream. */
  readonly end: nn.Identity;
  readonly #numLayers: number;

  constructor(config: AlbertConfig) {
    super();
    const { embedding_size, hidden_size, num_hidden_groups } = config;
    this.embedding_hidden_mapping_in = linear(embedding_size, hidden_size, config);
    this.albert_layer_groups = new nn.ModuleList(
      Array.from({ length: num_hidden_groups }, () => new AlbertLayerGroup(config)),
      { numCalls: config.num_hidden_layers },
    );
    this.end = new nn.Identity();
    this.#numLayers = config.num_hidden_layers;
  }

  override forward(embedded: Tensor, mask: Tensor | undefined): Tensor {
    const groups = this.albert_layer_groups;
    let hidden = this.embedding_hidden_mapping_in.forward(embedded); // [B, T, D]
    for (let layer = 0; layer < this.#numLayers; layer++) {
      const group = groups.at(Math.floor((layer * groups.length) / this.#numLayers)) as AlbertLayerGroup;
      hidden = group.forward(hidden, mask);
    }
    return this.end.forward(hidden);
  }
}

/**
 * The stack without a head.
 * @see Lan et al. 2019, https://arxiv.org/abs/1909.11942
 */
class AlbertModel extends nn.Module {
  readonly embeddings: BertEmbeddings;
  readonly encoder: AlbertTransformer;
  readonly pooler: nn.Linear | null;
  readonly #config: AlbertConfig;

  constructor(config: AlbertConfig, options: { readonly pooled: boolean }) {
    super();
    const { hidden_size: width } = config;
    this.embeddings = new BertEmbeddings(config, config.embedding_size);
    this.encoder = new AlbertTransformer(config);
    this.pooler = options.pooled ? linear(width, width, config, { activation: "tanh" }) : null;
    this.#config = config;
  }

  /**
   * @returns hidden states [B, T, D]
   * @throws {TroupeError} `MODEL_INPUT` for ids outside the vocabulary or rows that are too long
   */
  override forward(batch: EncoderBatch): Tensor {
    const { inputIds, attentionMask } = batch;
    const { vocab_size, max_position_embeddings } = this.#config;
    checkTokenIds("AlbertModel", inputIds, vocab_size, max_position_embeddings);
    const mask = attentionMask && nn.paddingMask(attentionMask); // [B, 1, 1, T]
    return this.encoder.forward(this.embeddings.forward(batch, positionsFromZero(inputIds)), mask);
  }

  /** [B, T, D] → [B, D]. The last layer computes all positions: its parameters are used by other layers too, which are split alike. */
  first(hidden: Tensor): Tensor {
    return firstOf(hidden);
  }
}

/** ALBERT's output layer for masked words; its features have the width of the embeddings. */
class AlbertPredictions extends WordHead {
  readonly LayerNorm: nn.LayerNorm;
  readonly dense: nn.Linear;

  constructor(config: AlbertConfig, embedding: nn.Parameter) {
    const { hidden_size, embedding_size: width, hidden_act: activation } = config;
    super(config, width, embedding);
    this.LayerNorm = new nn.LayerNorm(width, config.layer_norm_eps);
    this.dense = linear(hidden_size, width, config, { activation });
  }

  protected override features(hidden: Tensor): Tensor {
    return this.LayerNorm.forward(this.dense.forward(hidden)); // [B, T, E]
  }
}

const albert: TextEncoderFamily<AlbertConfig> = {
  prefix: "albert",
  architecture: "Albert",
  configOf: (fields) => albertConfig(fields),
  build: (config, { pooled }) => new AlbertModel(config, { pooled }),
  words: {
    name: "predictions",
    decoder: "predictions.decoder",
    build: (config, embedding) => new AlbertPredictions(config, embedding),
  },
  dropoutOf: (config) => config.classifier_dropout_prob,
  plan: albertPlan,
  naming: (tied) => encoderNaming("albert.", tied),
  configJson: (config, architecture) => configJsonOf(config, "albert", architecture),
};

/** ALBERT for masked language modelling. */
export class AlbertForMaskedLM extends ofFamily(MaskedLanguageModel<AlbertConfig>, albert) {}

/** ALBERT for sequence classification. */
export class AlbertForSequenceClassification extends ofFamily(SequenceClassifier<AlbertConfig>, albert) {}

/** ALBERT for token classification. */
export class AlbertForTokenClassification extends ofFamily(TokenClassifier<AlbertConfig>, albert) {}

/** ALBERT for question answering. */
export class AlbertForQuestionAnswering extends ofFamily(QuestionAnswerer<AlbertConfig>, albert) {}
