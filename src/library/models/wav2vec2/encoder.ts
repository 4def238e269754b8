import * as nn from "../../../compute/nn/index.ts";
import { arange, ops, type Tensor } from "../../../compute/tensor/index.ts";
import { linear } from "../encoder-parts.ts";
import { ProjectedAttention } from "../projected-attention.ts";
import { hasMaskVector, outputWidth, type SpeechConfig } from "./config.ts";
import { FeatureExtractor, FeatureProjection, numFrames } from "./features.ts";
import { SpecAugment } from "./spec-augment.ts";

// B recordings, T frames, D width of the layers, O output width.

class AdapterLayer extends nn.Module {
  readonly conv: nn.Conv1d;

  constructor({ adapter_kernel_size, adapter_stride: stride }: SpeechConfig, width: number) {
    super();
    this.conv = new nn.Conv1d(width, 2 * width, adapter_kernel_size, { stride, padding: 1 });
  }

  /** [B, O, T] → [B, O, T′]. */
  override forward(x: Tensor): Tensor {
    return ops.glu(this.conv.forward(x), 1);
  }
}

/** Convolutions that reduce the number of frames after the layers. */
class SpeechAdapter extends nn.Module {
  readonly proj: nn.Linear | null;
  readonly proj_layer_norm: nn.LayerNorm | null;
  readonly layers: nn.ModuleList<AdapterLayer>;

  constructor(config: SpeechConfig) {
    super();
    const { hidden_size, num_adapter_layers } = config;
    const width = outputWidth(config);
    this.proj = width === hidden_size ? null : new nn.Linear(hidden_size, width);
    this.proj_layer_norm = width === hidden_size ? null : new nn.LayerNorm(width);
    this.layers = nn.ModuleList.of(num_adapter_layers, () => new AdapterLayer(config, width));
  }

  /** [B, T, D] → [B, T′, O]. */
  override forward(hidden: Tensor): Tensor {
    const projected = this.proj === null ? hidden : this.proj.forward(hidden);
    const normed = this.proj_layer_norm === null ? projected : this.proj_layer_norm.forward(projected);
    let frames = normed.transpose(1, 2); // [B, O, T]
    for (const layer of this.layers) frames = layer.forward(frames);
    return frames.transpose(1, 2);
  }
}

// B recordings, N samples, T frames, D width.

/** Computes positions of frames from the frames: [B, T, D] → [B, T, D]. */
export type Positions = nn.Module & { forward(x: Tensor): Tensor };

/** Named tensors that pass through every layer, so that in a pipeline they reach the last stage. */
export type Carried = Readonly<Record<string, Tensor>>;

/** States, and the tensors that pass along. */
export interface CarryingStates {
  /** [B, T, D]. */
  readonly hidden: Tensor;
  readonly carried: Carried | undefined;
  /** If kept: each layer's input so far, [B, T, D], and after all layers the last output, before its norm. */
  readonly stream: readonly Tensor[] | undefined;
}

function handedOn(carried: Carried): Carried {
  return Object.fromEntries(Object.entries(carried).map(([name, tensor]) => [name, tensor.alias()]));
}

/** Options of pre-training and of classifiers. */
export interface StackOptions {
  /** bool [B, T]: masked frames. Default: drawn in training. */
  readonly masked?: Tensor | undefined;
  /** Computes tensors that are needed after the layers from the normalized frames before masking: [B, T, C] → tensors. */
  readonly carry?: (normed: Tensor) => Carried;
  /** Whether all layers' states are kept. */
  readonly keepsStream?: boolean;
}

class FeedForward extends nn.Module {
  readonly intermediate_dropout: nn.Dropout;
  readonly intermediate_dense: nn.Linear;
  readonly output_dense: nn.Linear;
  readonly output_dropout: nn.Dropout;

  constructor(config: SpeechConfig) {
    super();
    const { hidden_size: width, intermediate_size: inner, hidden_act: activation } = config;
    this.intermediate_dropout = new nn.Dropout(config.activation_dropout);
    this.intermediate_dense = linear(width, inner, config, { activation });
    this.output_dense = linear(inner, width, config);
    this.output_dropout = new nn.Dropout(config.hidden_dropout);
  }

  override forward(x: Tensor): Tensor {
    const inner = this.intermediate_dropout.forward(this.intermediate_dense.forward(x));
    return this.output_dropout.forward(this.output_dense.forward(inner));
  }
}

/** A layer's adapter to a language: the only part that is trained for it. */
class LanguageAdapter extends nn.Module {
  readonly norm: nn.LayerNorm;
  readonly linear_1: nn.Linear;
  readonly linear_2: nn.Linear;

  constructor(width: number, inner: number, config: SpeechConfig) {
    super();
    this.norm = new nn.LayerNorm(width);
    this.linear_1 = linear(width, inner, config, { activation: "relu" });
    this.linear_2 = linear(inner, width, config);
  }

  override forward(x: Tensor): Tensor {
    return this.linear_2.forward(this.linear_1.forward(this.norm.forward(x))); // [B, T, D]
  }
}

class EncoderLayer extends nn.Module {
  readonly attention: ProjectedAttention;
  readonly dropout: nn.Dropout;
  readonly layer_norm: nn.LayerNorm;
  readonly feed_forward: FeedForward;
  readonly final_layer_norm: nn.LayerNorm;
  readonly adapter_layer: LanguageAdapter | null;
  readonly layerdrop: nn.LayerDrop;
  readonly #normFirst: boolean;

  constructor(config: SpeechConfig) {
    super();
    const { hidden_size: width, layer_norm_eps } = config;
    this.attention = new ProjectedAttention(width, config.num_attention_heads, {
      dropout: config.attention_dropout,
      init: nn.normal(0, config.initializer_range),
    });
    this.dropout = new nn.Dropout(config.hidden_dropout);
    this.layer_norm = new nn.LayerNorm(width, layer_norm_eps);
    this.feed_forward = new FeedForward(config);
    this.final_layer_norm = new nn.LayerNorm(width, layer_norm_eps);
    const { adapter_attn_dim: inner = null, do_stable_layer_norm } = config;
    this.adapter_layer =
      inner === null || !do_stable_layer_norm ? null : new LanguageAdapter(width, inner, config);
    this.layerdrop = new nn.LayerDrop(config.layerdrop);
    this.#normFirst = do_stable_layer_norm;
  }

  /** @param carried - returned unchanged @param stream - inputs of earlier layers, to which this one's is added */
  override forward(x: Tensor, mask?: Tensor, carried?: Carried, stream?: readonly Tensor[]): CarryingStates {
    const hidden = this.layerdrop.forward(this.#transform(x, mask), x);
    const kept = stream && [...stream, x].map((each) => each.alias());
    return { hidden, carried: carried && handedOn(carried), stream: kept };
  }

  #transform(x: Tensor, mask: Tensor | undefined): Tensor {
    const attend = (input: Tensor) => this.dropout.forward(this.attention.forward(input, { mask })); // [B, T, D]
    if (this.#normFirst) {
      const attended = attend(this.layer_norm.forward(x)).add(x);
      const fed = attended.add(this.feed_forward.forward(this.final_layer_norm.forward(attended)));
      return this.adapter_layer === null ? fed : fed.add(this.adapter_layer.forward(fed));
    }
    const attended = this.layer_norm.forward(attend(x).add(x));
    return this.final_layer_norm.forward(attended.add(this.feed_forward.forward(attended)));
  }
}

class Encoder extends nn.Module {
  readonly pos_conv_embed: Positions;
  readonly layer_norm: nn.LayerNorm;
  readonly dropout: nn.Dropout;
  readonly layers: nn.ModuleList<EncoderLayer>;
  /** Marks the end of the residual stream. */
  readonly end: nn.Identity;
  readonly #normFirst: boolean;

  constructor(config: SpeechConfig, positions: Positions) {
    super();
    this.pos_conv_embed = positions;
    this.layer_norm = new nn.LayerNorm(config.hidden_size, config.layer_norm_eps);
    this.dropout = new nn.Dropout(config.hidden_dropout);
    this.layers = nn.ModuleList.of(config.num_hidden_layers, () => new EncoderLayer(config));
    this.end = new nn.Identity();
    this.#normFirst = config.do_stable_layer_norm;
  }

  /** @param present - bool [B, T]: false at padding */
  override forward(
    frames: Tensor,
    present: Tensor | undefined,
    carried: Carried | undefined,
    keepsStream: boolean,
  ): CarryingStates {
    const clean = present === undefined ? frames : frames.maskedFill(present.logicalNot().unsqueeze(-1), 0);
    const placed = clean.add(this.pos_conv_embed.forward(clean)); // [B, T, D]
    const mask = present && nn.paddingMask(present);
    const first = this.dropout.forward(this.#normFirst ? placed : this.layer_norm.forward(placed));
    let states: CarryingStates = { hidden: first, carried, stream: keepsStream ? [] : undefined };
    for (const layer of this.layers)
      states = layer.forward(states.hidden, mask, states.carried, states.stream);
    const ended = this.end.forward(states.hidden);
    return {
      hidden: this.#normFirst ? this.layer_norm.forward(ended) : ended,
      carried: states.carried,
      stream: states.stream && [...states.stream.map((each) => this.end.forward(each)), ended],
    };
  }
}

/** The stack without a head: samples to states. */
export class SpeechModel extends nn.Module {
  /** Replaces masked frames; null if frames are never masked. */
  readonly masked_spec_embed: nn.Parameter | null;
  readonly feature_extractor: FeatureExtractor;
  readonly feature_projection: FeatureProjection;
  readonly spec_augment: SpecAugment;
  readonly encoder: Encoder;
  readonly adapter: SpeechAdapter | null;
  readonly #config: SpeechConfig;

  constructor(config: SpeechConfig, positions: Positions) {
    super();
    this.masked_spec_embed = hasMaskVector(config)
      ? new nn.Parameter([config.hidden_size], nn.uniform(0, 1))
      : null;
    this.feature_extractor = new FeatureExtractor(config);
    this.feature_projection = new FeatureProjection(config);
    this.spec_augment = new SpecAugment(config);
    this.encoder = new Encoder(config, positions);
    this.adapter = config.add_adapter ? new SpeechAdapter(config) : null;
    this.#config = config;
  }

  /** @returns `hidden` [B, T, D], after the adapter, if any, with its frames and width; the result of `carry`; and the stream */
  override forward(
    samples: Tensor,
    attentionMask: Tensor | undefined,
    { masked, carry, keepsStream = false }: StackOptions = {},
  ): CarryingStates {
    const frames = this.feature_extractor.forward(samples); // [B, T, C]
    const length = frames.shape[1] ?? 0;
    const lengths = attentionMask && numFrames(attentionMask.to("int64").sum([1]), this.#config); // [B]
    const present = lengths && arange(length, { dtype: "int64" }).unsqueeze(0).lt(lengths.unsqueeze(1)); // [B, T]
    const { normed, projected } = this.feature_projection.forward(frames);
    const augmented = this.spec_augment.forward(projected, lengths, this.masked_spec_embed?.tensor, masked);
    const states = this.encoder.forward(augmented, present, carry?.(normed), keepsStream);
    return this.adapter === null ? states : { ...states, hidden: this.adapter.forward(states.hidden) };
  }
}
