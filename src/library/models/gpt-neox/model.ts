import * as nn from "../../../compute/nn/index.ts";
import type { Tensor } from "../../../compute/tensor/index.ts";
import { type CausalFamily, CausalLanguageModel } from "../causal-language-model.ts";
import { linear } from "../encoder-parts.ts";
import type { TextPlaces } from "../language-model.ts";
import { ofFamily } from "../of-family.ts";
import { longestContext, ropeAngles, turnsByLength } from "../rope-parameters.ts";
import { type RotaryContext, rotaryContext } from "../rotary-context.ts";
import { checkTokenIds, placesIn } from "../token-ids.ts";
import { type GPTNeoXConfig, gptNeoXConfig, gptNeoXConfigJson, rotaryWidth } from "./config.ts";
import { gptNeoXStackPlan } from "./tensor-plan.ts";

// B batch, T positions, D width, H heads, K head width (D = H·K), I inner width, V vocabulary. H, I and, in a layer's halves, T come
// from the tensors' shapes: tensor parallelism gives each rank some of the heads and inner features.

/** Causal self-attention of one layer; the first features of each head are rotated by position. */
class GPTNeoXAttention extends nn.Module {
  /** Each head's query, key and value, one after the other. */
  readonly query_key_value: nn.Linear;
  readonly dense: nn.Linear;
  readonly attention_dropout: nn.Dropout;
  readonly headWidth: number;

  constructor(config: GPTNeoXConfig) {
    super();
    const { hidden_size: width, attention_bias: bias } = config;
    this.query_key_value = linear(width, 3 * width, config, { bias });
    this.dense = linear(width, width, config, { bias });
    this.attention_dropout = new nn.Dropout(config.attention_dropout);
    this.headWidth = width / config.num_attention_heads;
  }

  override forward(x: Tensor, { angles, mask }: RotaryContext): Tensor {
    const heads = nn.splitHeads(this.query_key_value.forward(x), 3 * this.headWidth); // [B, H, T, 3·K]
    const [q, k, v] = heads.chunk(3, 3) as [Tensor, Tensor, Tensor]; // [B, H, T, K] each
    const turnedK = nn.rotate(k, angles);
    const seen = { ...nn.seenBy(mask), dropout: this.attention_dropout };
    return this.dense.forward(nn.joinHeads(nn.selfAttention(this, nn.rotate(q, angles), turnedK, v, seen))); // [B, T, D]
  }
}

/** The feed-forward half of a layer. */
class GPTNeoXMLP extends nn.Module {
  readonly dense_h_to_4h: nn.Linear;
  readonly dense_4h_to_h: nn.Linear;

  constructor(config: GPTNeoXConfig) {
    super();
    const { hidden_size, intermediate_size, hidden_act: activation } = config;
    this.dense_h_to_4h = linear(hidden_size, intermediate_size, config, { activation });
    this.dense_4h_to_h = linear(intermediate_size, hidden_size, config);
  }

  override forward(x: Tensor): Tensor {
    return this.dense_4h_to_h.forward(this.dense_h_to_4h.forward(x)); // [B, T, D] → [B, T, I] → [B, T, D]
  }
}

/** One layer: attention and feed-forward, each after a norm, in parallel or one after the other. */
class GPTNeoXLayer extends nn.Module {
  readonly input_layernorm: nn.LayerNorm;
  readonly post_attention_layernorm: nn.LayerNorm;
  readonly post_attention_dropout: nn.Dropout;
  readonly post_mlp_dropout: nn.Dropout;
  readonly attention: GPTNeoXAttention;
  readonly mlp: GPTNeoXMLP;
  readonly #isParallel: boolean;

  constructor(config: GPTNeoXConfig) {
    super();
    const { hidden_size, layer_norm_eps, hidden_dropout } = config;
    this.input_layernorm = new nn.LayerNorm(hidden_size, layer_norm_eps);
    this.post_attention_layernorm = new nn.LayerNorm(hidden_size, layer_norm_eps);
    this.post_attention_dropout = new nn.Dropout(hidden_dropout);
    this.post_mlp_dropout = new nn.Dropout(hidden_dropout);
    this.attention = new GPTNeoXAttention(config);
    this.mlp = new GPTNeoXMLP(config);
    this.#isParallel = config.use_parallel_residual;
  }

  override forward(x: Tensor, context: RotaryContext): Tensor {
    const mixed = this.attention.forward(this.input_layernorm.forward(x), context);
    const attended = this.post_attention_dropout.forward(mixed); // [B, T, D]
    if (this.#isParallel) return this.#feed(this.post_attention_layernorm.forward(x)).add(attended).add(x);
    const [sum, normed] = this.post_attention_layernorm.addThenNorm(attended, x); // both [B, T, D]
    return this.#feed(normed).add(sum);
  }

  #feed(x: Tensor): Tensor {
    return this.post_mlp_dropout.forward(this.mlp.forward(x)); // [B, T, D]
  }
}

/**
 * GPT-NeoX's stack without an output layer.
 * @see Black et al. 2022, https://arxiv.org/abs/2204.06745; Biderman et al. 2023, "Pythia", https://arxiv.org/abs/2304.01373
 */
class GPTNeoXModel extends nn.Module {
  readonly embed_in: nn.Embedding;
  readonly emb_dropout: nn.Dropout;
  readonly layers: nn.ModuleList<GPTNeoXLayer>;
  readonly final_layer_norm: nn.LayerNorm;
  readonly #config: GPTNeoXConfig;

  constructor(config: GPTNeoXConfig) {
    super();
    const { vocab_size, hidden_size, num_hidden_layers, hidden_dropout } = config;
    this.#config = config;
    this.embed_in = new nn.Embedding(vocab_size, hidden_size, nn.normal(0, config.initializer_range));
    this.emb_dropout = new nn.Dropout(hidden_dropout);
    this.layers = nn.ModuleList.of(num_hidden_layers, () => new GPTNeoXLayer(config));
    this.final_layer_norm = new nn.LayerNorm(hidden_size, config.layer_norm_eps);
  }

  /**
   * @param inputIds - [B, T], int64, each in [0, vocab_size)
   * @param places - see {@link TextPlaces}; padding counts in positions
   * @returns [B, T, D], the normed residual stream
   * @throws {TroupeError} `MODEL_INPUT`
   */
  override forward(inputIds: Tensor, places: TextPlaces = {}): Tensor {
    const placed = placesIn("GPTNeoXModel", inputIds, places);
    const { length } = placed;
    checkTokenIds("GPTNeoXModel", inputIds, this.#config.vocab_size, Number.POSITIVE_INFINITY, length); // angles are unlimited
    const context = rotaryContext(ropeAngles(this.#config, rotaryWidth(this.#config), length), placed);
    let x = this.emb_dropout.forward(this.embed_in.forward(inputIds)); // [B, T, D]
    for (const layer of this.layers) x = layer.forward(x, context); // [B, T, D]
    return this.final_layer_norm.forward(x); // [B, T, D]
  }
}

const gptNeoX: CausalFamily<GPTNeoXConfig> = {
  prefix: "gpt_neox",
  configOf: gptNeoXConfig,
  build: (config) => new GPTNeoXModel(config),
  words: "embed_in",
  maxPositions: longestContext,
  turnsByLength,
  plan: gptNeoXStackPlan,
  // Old files have masks and frequencies as buffers, and an output layer `embed_out`.
  buffers: [/\.attention\.(bias|masked_bias)$/, /rotary_emb\.inv_freq$/],
  renamed: [[/^embed_out\./, "lm_head."]],
  configJson: gptNeoXConfigJson,
};

/** GPT-NeoX for causal language modelling. */
export class GPTNeoXForCausalLM extends ofFamily(CausalLanguageModel<GPTNeoXConfig>, gptNeoX) {}
