import { LayerNorm, Module, ModuleList, type PackedRow } from "../../../compute/nn/index.ts";
import type { Tensor } from "../../../compute/tensor/index.ts";
import { encoderNaming } from "../bert/config.ts";
import { BertModel, EncoderEmbeddings, type EncoderLayers } from "../bert/encoder.ts";
import { BertForPreTraining, bertWords } from "../bert/model.ts";
import { configJsonOf } from "../config-fields.ts";
import { EncoderIntermediate, EncoderSelfAttention, PlainOutput } from "../encoder-parts.ts";
import { type Reads, readOfEach } from "../heads/index.ts";
import { ofFamily } from "../of-family.ts";
import {
  type HeadNeeds,
  MaskedLanguageModel,
  QuestionAnswerer,
  SequenceClassifier,
  type TextEncoderFamily,
  TokenClassifier,
} from "../text-encoder/index.ts";
import { type MegatronBertConfig, megatronBertConfig } from "./config.ts";
import { megatronBertPlan } from "./tensor-plan.ts";

// B batch, T positions, D width, I inner width.

class MegatronBertAttention extends Module {
  readonly ln: LayerNorm;
  readonly self: EncoderSelfAttention;
  readonly output: PlainOutput;

  constructor(config: MegatronBertConfig, reads: Reads) {
    super();
    this.ln = new LayerNorm(config.hidden_size, config.layer_norm_eps);
    this.self = new EncoderSelfAttention(config, reads);
    this.output = new PlainOutput(config.hidden_size, config);
  }

  override forward(x: Tensor, mask: Tensor | PackedRow | undefined): Tensor {
    return this.output.forward(this.self.forward(this.ln.forward(x), mask)); // [B, T, D]
  }
}

/** One layer: attention and feed-forward, each after a norm and added to the residual stream. */
class MegatronBertLayer extends Module {
  readonly attention: MegatronBertAttention;
  readonly ln: LayerNorm;
  readonly intermediate: EncoderIntermediate;
  readonly output: PlainOutput;

  constructor(config: MegatronBertConfig, reads: Reads) {
    super();
    const { hidden_size, intermediate_size, layer_norm_eps } = config;
    this.attention = new MegatronBertAttention(config, reads);
    this.ln = new LayerNorm(hidden_size, layer_norm_eps);
    this.intermediate = new EncoderIntermediate(config);
    this.output = new PlainOutput(intermediate_size, config);
  }

  override forward(x: Tensor, mask?: Tensor | PackedRow): Tensor {
    const attended = this.attention.forward(x, mask); // [B, T, D]
    const [sum, normed] = this.ln.addThenNorm(attended, this.attention.self.answered(x, mask));
    return sum.add(this.output.forward(this.intermediate.forward(normed)));
  }
}

class MegatronBertEncoder extends Module implements EncoderLayers {
  readonly layer: ModuleList<MegatronBertLayer>;
  readonly ln: LayerNorm;

  constructor(config: MegatronBertConfig, reads: Reads) {
    super();
    this.layer = new ModuleList(
      readOfEach(config.num_hidden_layers, reads).map((each) => new MegatronBertLayer(config, each)),
    );
    this.ln = new LayerNorm(config.hidden_size, config.layer_norm_eps);
  }

  override forward(x: Tensor, mask: Tensor | PackedRow | undefined): Tensor {
    let hidden = x;
    for (const layer of this.layer) hidden = layer.forward(hidden, mask);
    return this.ln.forward(hidden); // [B, T, D]
  }
}

/**
 * Megatron-LM's BERT, with norms before the halves of a layer, without a head.
 * @see Shoeybi et al. 2019, https://arxiv.org/abs/1909.08053, section 5.3
 */
function megatronBertModel(config: MegatronBertConfig, needs: HeadNeeds): BertModel {
  return new BertModel(config, {
    ...needs,
    parts: {
      embeddings: new EncoderEmbeddings(config, config.hidden_size),
      encoder: new MegatronBertEncoder(config, needs.reads),
    },
  });
}

const megatronBert: TextEncoderFamily<MegatronBertConfig> = {
  prefix: "bert",
  architecture: "MegatronBert",
  configOf: megatronBertConfig,
  build: megatronBertModel,
  words: bertWords,
  dropoutOf: (config) => config.hidden_dropout_prob,
  plan: megatronBertPlan,
  naming: (tied) => encoderNaming("bert.", tied),
  configJson: ({ classifier_dropout: _, ...config }, architecture) =>
    configJsonOf(config, "megatron-bert", architecture),
};

/** Megatron's BERT for masked language modelling. */
export class MegatronBertForMaskedLM extends ofFamily(
  MaskedLanguageModel<MegatronBertConfig>,
  megatronBert,
) {}

/** Megatron's BERT for pre-training: masked words, and whether one text follows another. */
export class MegatronBertForPreTraining extends ofFamily(BertForPreTraining, megatronBert) {}

/** Megatron's BERT for sequence classification. */
export class MegatronBertForSequenceClassification extends ofFamily(
  SequenceClassifier<MegatronBertConfig>,
  megatronBert,
) {}

/** Megatron's BERT for token classification. */
export class MegatronBertForTokenClassification extends ofFamily(
  TokenClassifier<MegatronBertConfig>,
  megatronBert,
) {}

/** Megatron's BERT for question answering. */
export class MegatronBertForQuestionAnswering extends ofFamily(
  QuestionAnswerer<MegatronBertConfig>,
  megatronBert,
) {}
