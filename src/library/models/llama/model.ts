import * as nn from "../../../compute/nn/index.ts";
import type { Tensor } from "../../../compute/tensor/index.ts";
import { type CausalFamily, CausalLanguageModel, causalNaming } from "../causal-language-model.ts";
import { linear } from "../encoder-parts.ts";
import type { TextPlaces } from "../language-model.ts";
import { ofFamily } from "../of-family.ts";
import { longestContext, ropeAngles, turnsByLength } from "../rope-parameters.ts";
import { type RotaryContext, rotaryContext } from "../rotary-context.ts";
import { checkTokenIds, placesIn } from "../token-ids.ts";
import type { NamedState, StateNaming } from "../weights.ts";
import { biasesOf, type LlamaConfig, llamaConfig, llamaConfigJson, windowOf } from "./config.ts";
import { llamaStackPlan } from "./tensor-plan.ts";

// B batch, T positions, D width, H heads, G key/value heads, K head width, I inner width, V vocabulary. H, G, I and, in a layer's
// halves, T come from the tensors' shapes: tensor parallelism gives each rank some of the heads and inner features.

type Fields = Readonly<Record<string, unknown>>;

/** Causal self-attention of one layer: grouped heads, rotary positions, and the family's window, if any. */
export class LlamaAttention extends nn.Module {
  readonly q_proj: nn.Linear;
  readonly k_proj: nn.Linear;
  readonly v_proj: nn.Linear;
  readonly o_proj: nn.Linear;
  readonly dropout: nn.Dropout;
  readonly headWidth: number;
  readonly window: number | undefined;

  constructor(config: LlamaConfig, layerIndex: number) {
    super();
    const { hidden_size, num_attention_heads, num_key_value_heads, head_dim } = config;
    const { qkv, out } = biasesOf(config);
    this.q_proj = linear(hidden_size, num_attention_heads * head_dim, config, { bias: qkv });
    this.k_proj = linear(hidden_size, num_key_value_heads * head_dim, config, { bias: qkv });
    this.v_proj = linear(hidden_size, num_key_value_heads * head_dim, config, { bias: qkv });
    this.o_proj = linear(num_attention_heads * head_dim, hidden_size, config, { bias: out });
    this.dropout = new nn.Dropout(config.attention_dropout);
    this.headWidth = head_dim;
    this.window = windowOf(config, layerIndex);
  }

  override forward(x: Tensor, { angles, mask }: RotaryContext): Tensor {
    const q = nn.rotate(nn.splitHeads(this.q_proj.forward(x), this.headWidth), angles); // [B, H, T, K]
    const k = nn.rotate(nn.splitHeads(this.k_proj.forward(x), this.headWidth), angles); // [B, G, T, K]
    const v = nn.splitHeads(this.v_proj.forward(x), this.headWidth); // [B, G, T, K]
    const { window, dropout } = this;
    const mixed = nn.selfAttention(this, q, k, v, { window, ...nn.seenBy(mask), dropout }); // [B, H, T, K]
    return this.o_proj.forward(nn.joinHeads(mixed)); // [B, T, D]
  }
}

/** The gated feed-forward half of a layer. */
class LlamaMLP extends nn.Module {
  readonly gate_proj: nn.Linear;
  readonly up_proj: nn.Linear;
  readonly down_proj: nn.Linear;
  readonly activation: LlamaConfig["hidden_act"];
  readonly isGated: boolean = true;

  constructor(config: LlamaConfig) {
    super();
    const { hidden_size, intermediate_size } = config;
    const { feedForward } = biasesOf(config);
    this.gate_proj = linear(hidden_size, intermediate_size, config, { bias: feedForward });
    this.up_proj = linear(hidden_size, intermediate_size, config, { bias: feedForward });
    this.down_proj = linear(intermediate_size, hidden_size, config, { bias: feedForward });
    this.activation = config.hidden_act;
  }

  override forward(x: Tensor): Tensor {
    const inner = nn.gated(this.activation, this.gate_proj.forward(x), this.up_proj.forward(x)); // [B, T, I]
    return this.down_proj.forward(inner); // [B, T, D]
  }
}

/** One layer: attention and feed-forward, each after a norm and added to the residual stream. */
class LlamaDecoderLayer extends nn.Module {
  readonly self_attn: LlamaAttention;
  readonly mlp: LlamaMLP;
  readonly input_layernorm: nn.RMSNorm;
  readonly post_attention_layernorm: nn.RMSNorm;

  constructor(config: LlamaConfig, layerIndex: number) {
    super();
    this.self_attn = new LlamaAttention(config, layerIndex);
    this.mlp = new LlamaMLP(config);
    this.input_layernorm = new nn.RMSNorm(config.hidden_size, config.rms_norm_eps);
    this.post_attention_layernorm = new nn.RMSNorm(config.hidden_size, config.rms_norm_eps);
  }

  override forward(x: Tensor, context: RotaryContext): Tensor {
    const attended = this.self_attn.forward(this.input_layernorm.forward(x), context); // [B, T, D]
    const [sum, normed] = this.post_attention_layernorm.addThenNorm(attended, x); // both [B, T, D]
    return sum.add(this.mlp.forward(normed)); // [B, T, D]
  }
}

/**
 * The stack of LLaMA, Mistral and Qwen2 without an output layer.
 * @see Touvron et al. 2023, https://arxiv.org/abs/2302.13971; Jiang et al. 2023, https://arxiv.org/abs/2310.06825; Yang et
 *   al. 2024, https://arxiv.org/abs/2407.10671
 */
export class LlamaModel extends nn.Module implements NamedState, nn.TensorSplittable {
  readonly config: LlamaConfig;
  readonly embed_tokens: nn.Embedding;
  /** Marks the start of the layers. */
  readonly start: nn.Identity;
  readonly layers: nn.ModuleList<LlamaDecoderLayer>;
  readonly norm: nn.RMSNorm;

  /** @throws {TroupeError} `MODEL_CONFIG` for fields out of range */
  constructor(fields: Fields = {}) {
    super();
    const config = llamaConfig(fields);
    const { vocab_size, hidden_size, num_hidden_layers, pad_token_id } = config;
    const init = nn.normal(0, config.initializer_range);
    this.config = config;
    this.embed_tokens = new nn.Embedding(vocab_size, hidden_size, init, pad_token_id ?? undefined);
    this.start = new nn.Identity();
    this.layers = nn.ModuleList.of(num_hidden_layers, (layer) => new LlamaDecoderLayer(config, layer));
    this.norm = new nn.RMSNorm(hidden_size, config.rms_norm_eps);
  }

  /** Names of these parameters in Hugging Face's files. */
  get stateNaming(): StateNaming {
    return causalNaming(llama, true);
  }

  get configJson(): NamedState["configJson"] {
    return llamaConfigJson(this.config, "Model");
  }

  get tensorPlan(): nn.TensorPlan {
    return { ...llamaStackPlan(this.config), norm: nn.sequence({ output: "replicated" }) };
  }

  /**
   * @param inputIds - [B, T], int64, each in [0, vocab_size)
   * @param places.attentionMask - [B, T], with cached positions [B, S], 0 at padding, which counts in positions
   * @param places - see {@link TextPlaces}
   * @returns [B, T, D], the normed residual stream
   * @throws {TroupeError} `MODEL_INPUT`
   */
  override forward(inputIds: Tensor, places: TextPlaces = {}): Tensor {
    const placed = placesIn("LlamaModel", inputIds, places);
    const { length } = placed;
    checkTokenIds("LlamaModel", inputIds, this.config.vocab_size, Number.POSITIVE_INFINITY, length); // angles are unlimited
    const context = rotaryContext(ropeAngles(this.config, this.config.head_dim, length), placed);
    let x = this.start.forward(this.embed_tokens.forward(inputIds)); // [B, T, D]
    for (const layer of this.layers) x = layer.forward(x, context); // [B, T, D]
    return this.norm.forward(x); // [B, T, D]
  }
}

const llama: CausalFamily<LlamaConfig> = {
  prefix: "model",
  configOf: llamaConfig,
  build: (config) => new LlamaModel(config),
  words: "embed_tokens",
  maxPositions: longestContext,
  turnsByLength,
  plan: llamaStackPlan,
  buffers: [/rotary_emb\.inv_freq$/], // of old files
  configJson: llamaConfigJson,
};

/** LLaMA, Mistral or Qwen2 for causal language modelling. */
export class LlamaForCausalLM extends ofFamily(CausalLanguageModel<LlamaConfig>, llama) {
  declare readonly model: LlamaModel;
}
