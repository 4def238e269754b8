import * as nn from "../../../compute/nn/index.ts";
import type { Tensor } from "../../../compute/tensor/index.ts";
import { feedForwardOf, type T5Config } from "./config.ts";

// B batch, T queries, S keys, D width, H heads, K head width, I inner width. H, I and, in a layer's halves, T and S come from the
// tensors' shapes: tensor parallelism gives each rank some of the heads and inner features.

/** Mask and bias of an attention. */
export interface T5Seen {
  /** bool [B, 1, 1, S], false at padding; or the packed texts. Undefined without padding. */
  readonly mask?: Tensor | nn.PackedRow | undefined;
  /** [1, H, T, S], added to the scores. */
  readonly bias?: Tensor | undefined;
  readonly causal?: boolean;
}

/** Self-attention or cross-attention of one layer. Scores are not divided by √K. */
class T5Attention extends nn.Module {
  readonly q: nn.Linear;
  readonly k: nn.Linear;
  readonly v: nn.Linear;
  readonly o: nn.Linear;
  /** Relative bias, in the first layer of a stack, for all layers. */
  readonly relative_attention_bias: nn.RelativePositionBias | null;
  readonly dropout: nn.Dropout;
  readonly headWidth: number;

  /** @param options.bothWays - gives the layer a relative bias; whether keys after the query have their own buckets */
  constructor(config: T5Config, options: { readonly bothWays?: boolean } = {}) {
    super();
    const { d_model, d_kv, num_heads, initializer_factor: factor } = config;
    const inner = num_heads * d_kv;
    const init = (numInputs: number) => nn.normal(0, factor / Math.sqrt(numInputs));
    this.q = new nn.Linear(d_model, inner, { bias: false, init: init(d_model * d_kv) });
    this.k = new nn.Linear(d_model, inner, { bias: false, init: init(d_model) });
    this.v = new nn.Linear(d_model, inner, { bias: false, init: init(d_model) });
    this.o = new nn.Linear(inner, d_model, { bias: false, init: init(inner) });
    const { relative_attention_num_buckets: numBuckets, relative_attention_max_distance: maxDistance } =
      config;
    const { bothWays } = options;
    this.relative_attention_bias =
      bothWays === undefined
        ? null
        : new nn.RelativePositionBias(num_heads, { numBuckets, maxDistance, bothWays }, init(d_model));
    this.dropout = new nn.Dropout(config.dropout_rate);
    this.headWidth = d_kv;
  }

  /**
   * @param x - [B, T, D]
   * @param read - [B, S, D], source of keys and values: x itself in self-attention; null where they are kept
   */
  override forward(x: Tensor, read: Tensor | null, { mask, bias, causal = false }: T5Seen): Tensor {
    const heads = (features: Tensor) => nn.splitHeads(features, this.headWidth);
    const q = heads(this.q.forward(x));
    const makeKeys = () =>
      [this.k, this.v].map((map) => heads(map.forward(read as Tensor))) as [keys: Tensor, values: Tensor];
    const options = { ...nn.seenBy(mask), scale: 1, dropout: this.dropout };
    const attend = () =>
      causal
        ? nn.selfAttention(this, q, ...makeKeys(), { ...options, bias })
        : nn.attention(q, ...makeKeys(), { ...options, bias });
    const mixed = read === x ? attend() : nn.crossAttention(this, q, makeKeys, options); // [B, H, T, K]
    return this.o.forward(nn.joinHeads(mixed)); // [B, T, D]
  }
}

/** The first half of a layer: self-attention after a norm, added to the residual stream. */
class T5LayerSelfAttention extends nn.Module {
  readonly SelfAttention: T5Attention;
  readonly layer_norm: nn.RMSNorm;
  readonly dropout: nn.Dropout;

  constructor(config: T5Config, options: { readonly bothWays?: boolean }) {
    super();
    this.SelfAttention = new T5Attention(config, options);
    this.layer_norm = new nn.RMSNorm(config.d_model, config.layer_norm_epsilon);
    this.dropout = new nn.Dropout(config.dropout_rate);
  }

  override forward(x: Tensor, seen: T5Seen): Tensor {
    const normed = this.layer_norm.forward(x); // [B, T, D]
    return x.add(this.dropout.forward(this.SelfAttention.forward(normed, normed, seen)));
  }
}

/** The middle of a decoder's layer: cross-attention to the encoder's states. */
class T5LayerCrossAttention extends nn.Module {
  readonly EncDecAttention: T5Attention;
  readonly layer_norm: nn.RMSNorm;
  readonly dropout: nn.Dropout;

  constructor(config: T5Config) {
    super();
    this.EncDecAttention = new T5Attention(config);
    this.layer_norm = new nn.RMSNorm(config.d_model, config.layer_norm_epsilon);
    this.dropout = new nn.Dropout(config.dropout_rate);
  }

  /** @param states - [B, S, D], of the encoder; null where their keys are kept @param mask - bool [B, 1, 1, S] */
  override forward(x: Tensor, states: Tensor | null, mask: Tensor | undefined): Tensor {
    const attended = this.EncDecAttention.forward(this.layer_norm.forward(x), states, { mask }); // [B, T, D]
    return x.add(this.dropout.forward(attended));
  }
}

/** The feed-forward layer: one map and an activation. */
class T5DenseActDense extends nn.Module {
  readonly wi: nn.Linear;
  readonly wo: nn.Linear;
  readonly dropout: nn.Dropout;
  readonly activation: nn.ActivationName;

  constructor(config: T5Config) {
    super();
    this.wi = mapOf(config, config.d_model, config.d_ff);
    this.wo = mapOf(config, config.d_ff, config.d_model);
    this.dropout = new nn.Dropout(config.dropout_rate);
    this.activation = feedForwardOf(config).activation;
  }

  override forward(x: Tensor): Tensor {
    const inner = nn.activations[this.activation](this.wi.forward(x)); // [B, T, I]
    return this.wo.forward(this.dropout.forward(inner)); // [B, T, D]
  }
}

/** The gated feed-forward layer of T5 1.1. */
class T5DenseGatedActDense extends nn.Module {
  readonly wi_0: nn.Linear;
  readonly wi_1: nn.Linear;
  readonly wo: nn.Linear;
  readonly dropout: nn.Dropout;
  readonly activation: nn.ActivationName;
  readonly isGated: boolean = true;

  constructor(config: T5Config) {
    super();
    this.wi_0 = mapOf(config, config.d_model, config.d_ff);
    this.wi_1 = mapOf(config, config.d_model, config.d_ff);
    this.wo = mapOf(config, config.d_ff, config.d_model);
    this.dropout = new nn.Dropout(config.dropout_rate);
    this.activation = feedForwardOf(config).activation;
  }

  override forward(x: Tensor): Tensor {
    const inner = nn.gated(this.activation, this.wi_0.forward(x), this.wi_1.forward(x)); // [B, T, I]
    return this.wo.forward(this.dropout.forward(inner)); // [B, T, D]
  }
}

/** The last part of a layer: feed-forward after a norm, added to the residual stream. */
class T5LayerFF extends nn.Module {
  readonly DenseReluDense: T5DenseActDense | T5DenseGatedActDense;
  readonly layer_norm: nn.RMSNorm;
  readonly dropout: nn.Dropout;

  constructor(config: T5Config) {
    super();
    const { isGated } = feedForwardOf(config);
    this.DenseReluDense = isGated ? new T5DenseGatedActDense(config) : new T5DenseActDense(config);
    this.layer_norm = new nn.RMSNorm(config.d_model, config.layer_norm_epsilon);
    this.dropout = new nn.Dropout(config.dropout_rate);
  }

  override forward(x: Tensor): Tensor {
    return x.add(this.dropout.forward(this.DenseReluDense.forward(this.layer_norm.forward(x)))); // [B, T, D]
  }
}

/** Input and output of a layer. */
export interface T5Stream {
  /** [B, T, D]. */
  readonly x: Tensor;
  /** The bias of self-attention, computed by the stack's first layer; undefined before it. */
  readonly bias: Tensor | undefined;
}

/** A layer of the encoder. */
export class T5EncoderBlock extends nn.Module {
  readonly layer: nn.ModuleList<T5LayerSelfAttention | T5LayerFF>;
  readonly #attention: T5LayerSelfAttention;
  readonly #feedForward: T5LayerFF;

  constructor(config: T5Config, layerIndex: number) {
    super();
    this.#attention = new T5LayerSelfAttention(config, layerIndex === 0 ? { bothWays: true } : {});
    this.#feedForward = new T5LayerFF(config);
    this.layer = new nn.ModuleList([this.#attention, this.#feedForward]);
  }

  /**
   * @param length - S, or that of the longest packed text; a rank's x may have only a share of it
   * @param mask - bool [B, 1, 1, S], or the packed texts
   */
  override forward(
    { x, bias: given }: T5Stream,
    length: number,
    mask: Tensor | nn.PackedRow | undefined,
  ): T5Stream {
    const bias = given ?? this.#attention.SelfAttention.relative_attention_bias?.between(length, length);
    return { x: this.#feedForward.forward(this.#attention.forward(x, { mask, bias })), bias };
  }
}

/** A layer of the decoder. */
export class T5DecoderBlock extends nn.Module {
  readonly layer: nn.ModuleList<T5LayerSelfAttention | T5LayerCrossAttention | T5LayerFF>;
  readonly #attention: T5LayerSelfAttention;
  readonly #crossAttention: T5LayerCrossAttention;
  readonly #feedForward: T5LayerFF;

  constructor(config: T5Config, layerIndex: number) {
    super();
    this.#attention = new T5LayerSelfAttention(config, layerIndex === 0 ? { bothWays: false } : {});
    this.#crossAttention = new T5LayerCrossAttention(config);
    this.#feedForward = new T5LayerFF(config);
    this.layer = new nn.ModuleList([this.#attention, this.#crossAttention, this.#feedForward]);
  }

  /** The decoder's self-attention. */
  get ownAttention(): T5Attention {
    return this.#attention.SelfAttention;
  }

  /**
   * @param places - T, of which a rank's x may have only a share, and the position of the first
   * @param masks.own - bool [B, 1, 1, T], combined with the causal mask
   * @param states - [B, S, D], the encoder's; null where their keys and values are kept
   * @param masks.states - bool [B, 1, 1, S]
   */
  override forward(
    { x, bias: given }: T5Stream,
    { length, first }: { readonly length: number; readonly first: number },
    states: Tensor | null,
    masks: { readonly own: Tensor | undefined; readonly states: Tensor | undefined },
  ): T5Stream {
    const bias = given ?? this.#attention.SelfAttention.relative_attention_bias?.causal(length, first);
    const attended = this.#attention.forward(x, { mask: masks.own, bias, causal: true });
    return {
      x: this.#feedForward.forward(this.#crossAttention.forward(attended, states, masks.states)),
      bias,
    };
  }
}

/** A map of a feed-forward half, without a bias. */
function mapOf({ initializer_factor: factor }: T5Config, numInputs: number, numOutputs: number): nn.Linear {
  return new nn.Linear(numInputs, numOutputs, {
    bias: false,
    init: nn.normal(0, factor / Math.sqrt(numInputs)),
  });
}
