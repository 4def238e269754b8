import { TroupeError } from "../../errors.ts";
import {
  ctcLoss,
  Dropout,
  Identity,
  LayerNorm,
  Linear,
  Module,
  ModuleList,
  normal,
  Parameter,
  paddingMask,
  type TensorPlan,
  uniform,
  zeros,
} from "../../nn/index.ts";
import { arange, type Tensor } from "../../tensor/index.ts";
import { configJsonOf } from "../config-fields.ts";
import { ProjectedAttention } from "../projected-attention.ts";
import type { ModelOutputs, TaskModel } from "../task-model.ts";
import type { NamedState, StateNaming } from "../weights.ts";
import { type Wav2Vec2Config, wav2vec2Config } from "./config.ts";
import { FeatureExtractor, FeatureProjection, linear, numFrames, PositionalConvolution } from "./features.ts";
import { wav2vec2Naming } from "./state-dict-adapter.ts";
import { wav2vec2Plan } from "./tensor-plan.ts";

// B recordings, N samples, T frames, D width, V tokens.

class FeedForward extends Module {
  readonly intermediate_dropout: Dropout;
  readonly intermediate_dense: Linear;
  readonly output_dense: Linear;
  readonly output_dropout: Dropout;

  constructor(config: Wav2Vec2Config) {
    super();
    const { hidden_size: width, intermediate_size: inner, hidden_act: activation } = config;
    const init = normal(0, config.initializer_range);
    this.intermediate_dropout = new Dropout(config.activation_dropout);
    this.intermediate_dense = new Linear(width, inner, { init, biasInit: zeros, activation });
    this.output_dense = linear(inner, width, config);
    this.output_dropout = new Dropout(config.hidden_dropout);
  }

  override forward(x: Tensor): Tensor {
    const inner = this.intermediate_dropout.forward(this.intermediate_dense.forward(x));
    return this.output_dropout.forward(this.output_dense.forward(inner));
  }
}

class EncoderLayer extends Module {
  readonly attention: ProjectedAttention;
  readonly dropout: Dropout;
  readonly layer_norm: LayerNorm;
  readonly feed_forward: FeedForward;
  readonly final_layer_norm: LayerNorm;
  readonly #normFirst: boolean;

  constructor(config: Wav2Vec2Config) {
    super();
    const { hidden_size: width, layer_norm_eps } = config;
    this.attention = new ProjectedAttention(width, config.num_attention_heads, {
      dropout: config.attention_dropout,
      init: normal(0, config.initializer_range),
    });
    this.dropout = new Dropout(config.hidden_dropout);
    this.layer_norm = new LayerNorm(width, layer_norm_eps);
    this.feed_forward = new FeedForward(config);
    this.final_layer_norm = new LayerNorm(width, layer_norm_eps);
    this.#normFirst = config.do_stable_layer_norm;
  }

  override forward(x: Tensor, mask?: Tensor): Tensor {
    const attend = (input: Tensor) => this.dropout.forward(this.attention.forward(input, { mask })); // [B, T, D]
    if (this.#normFirst) {
      const attended = attend(this.layer_norm.forward(x)).add(x);
      return attended.add(this.feed_forward.forward(this.final_layer_norm.forward(attended)));
    }
    const attended = this.layer_norm.forward(attend(x).add(x));
    return this.final_layer_norm.forward(attended.add(this.feed_forward.forward(attended)));
  }
}

class Encoder extends Module {
  readonly pos_conv_embed: PositionalConvolution;
  readonly layer_norm: LayerNorm;
  readonly dropout: Dropout;
  readonly layers: ModuleList<EncoderLayer>;
  /** Where the residual stream ends. */
  readonly end: Identity;
  readonly #normFirst: boolean;

  constructor(config: Wav2Vec2Config) {
    super();
    this.pos_conv_embed = new PositionalConvolution(config);
    this.layer_norm = new LayerNorm(config.hidden_size, config.layer_norm_eps);
    this.dropout = new Dropout(config.hidden_dropout);
    this.layers = new ModuleList(
      Array.from({ length: config.num_hidden_layers }, () => new EncoderLayer(config)),
    );
    this.end = new Identity();
    this.#normFirst = config.do_stable_layer_norm;
  }

  /** @param present - bool [B, T]: which frames are no padding */
  override forward(frames: Tensor, present: Tensor | undefined): Tensor {
    const clean = present === undefined ? frames : frames.maskedFill(present.logicalNot().unsqueeze(-1), 0);
    const placed = clean.add(this.pos_conv_embed.forward(clean)); // [B, T, D]
    const mask = present && paddingMask(present);
    let hidden = this.dropout.forward(this.#normFirst ? placed : this.layer_norm.forward(placed));
    for (const layer of this.layers) hidden = layer.forward(hidden, mask);
    const ended = this.end.forward(hidden);
    return this.#normFirst ? this.layer_norm.forward(ended) : ended;
  }
}

class Wav2Vec2Model extends Module {
  /** What stands for masked frames; of use in pre-training alone. */
  readonly masked_spec_embed: Parameter;
  readonly feature_extractor: FeatureExtractor;
  readonly feature_projection: FeatureProjection;
  readonly encoder: Encoder;
  readonly #config: Wav2Vec2Config;

  constructor(config: Wav2Vec2Config) {
    super();
    this.masked_spec_embed = new Parameter([config.hidden_size], uniform(0, 1));
    this.feature_extractor = new FeatureExtractor(config);
    this.feature_projection = new FeatureProjection(config);
    this.encoder = new Encoder(config);
    this.#config = config;
  }

  /** @returns [B, T, D] */
  override forward(samples: Tensor, attentionMask: Tensor | undefined): Tensor {
    const frames = this.feature_extractor.forward(samples); // [B, T, C]
    const length = frames.shape[1] ?? 0;
    const present =
      attentionMask &&
      arange(length, { dtype: "int64" })
        .unsqueeze(0)
        .lt(numFrames(attentionMask.to("int64").sum([1]), this.#config).unsqueeze(1)); // [B, T]
    return this.encoder.forward(this.feature_projection.forward(frames), present);
  }
}

/** Recordings, and what is said in them. */
export type SpeechBatch = {
  /** [B, N], float: samples. */
  readonly inputValues: Tensor;
  /** [B, N], 0 where a recording is padded, at its end. */
  readonly attentionMask?: Tensor | undefined;
  /** [B, L], int64; −100 behind the end. */
  readonly labels?: Tensor | undefined;
};

/**
 * wav2vec 2 that writes down what is said.
 * @see Baevski et al. 2020, https://arxiv.org/abs/2006.11477
 */
export class Wav2Vec2ForCTC extends Module implements TaskModel {
  readonly config: Wav2Vec2Config;
  readonly wav2vec2: Wav2Vec2Model;
  readonly dropout: Dropout;
  readonly lm_head: Linear;

  /** @throws {TroupeError} `MODEL_CONFIG` */
  constructor(fields: Readonly<Record<string, unknown>> = {}) {
    super();
    this.config = wav2vec2Config(fields);
    this.wav2vec2 = new Wav2Vec2Model(this.config);
    this.dropout = new Dropout(this.config.final_dropout);
    this.lm_head = linear(this.config.hidden_size, this.config.vocab_size, this.config);
  }

  get stateNaming(): StateNaming {
    return wav2vec2Naming;
  }

  get configJson(): NamedState["configJson"] {
    return configJsonOf(this.config, "wav2vec2", "Wav2Vec2ForCTC");
  }

  get tensorPlan(): TensorPlan {
    return wav2vec2Plan(this.config);
  }

  /**
   * @returns `loss`, by `ctc_loss_reduction`, or `logits` [B, T, V]
   * @throws {TroupeError} `MODEL_INPUT` for recordings that are too short for one frame
   */
  override forward({ inputValues, attentionMask, labels }: SpeechBatch): ModelOutputs {
    this.#check(inputValues);
    const hidden = this.dropout.forward(this.wav2vec2.forward(inputValues, attentionMask)); // [B, T, D]
    const logits = this.lm_head.forward(hidden);
    if (labels === undefined) return { logits };
    const { pad_token_id, ctc_loss_reduction: reduction, ctc_zero_infinity: zeroInfinity } = this.config;
    const inputLengths = attentionMask && numFrames(attentionMask.to("int64").sum([1]), this.config);
    return {
      loss: ctcLoss(logits, labels, { inputLengths, blank: Number(pad_token_id), reduction, zeroInfinity }),
    };
  }

  #check({ shape, ndim }: Tensor): void {
    const { conv_kernel, conv_stride } = this.config;
    const least = conv_kernel.reduceRight(
      (length, kernel, index) => (length - 1) * (conv_stride[index] ?? 1) + kernel,
      1,
    );
    if (ndim === 2 && (shape[1] ?? 0) >= least) return;
    throw new TroupeError(
      "MODEL_INPUT",
      { where: "Wav2Vec2ForCTC", expected: `samples of [batch, at least ${least}]`, got: `[${shape}]` },
      { fields: { shape, least } },
    );
  }
}
