import * as nn from "../../../compute/nn/index.ts";
import type { Tensor } from "../../../compute/tensor/index.ts";
import { type CausalFamily, CausalLanguageModel, causalNaming } from "../causal-language-model.ts";
import type { TextPlaces } from "../language-model.ts";
import { ofFamily } from "../of-family.ts";
import { checkTokenIds, placesIn } from "../token-ids.ts";
import type { NamedState, StateNaming } from "../weights.ts";
import { type GPT2Config, gpt2Config, gpt2ConfigJson } from "./config.ts";
import { gpt2StackPlan } from "./tensor-plan.ts";

// B batch, T positions, D width, H heads, K head width (D = H·K), I inner width, V vocabulary. H, I and, in a layer's halves, T come
// from the tensors' shapes: tensor parallelism gives each rank some of the heads and inner features.

/** Causal self-attention of one layer. */
export class GPT2Attention extends nn.Module {
  readonly c_attn: nn.Conv1D;
  readonly c_proj: nn.Conv1D;
  readonly attn_dropout: nn.Dropout;
  readonly resid_dropout: nn.Dropout;
  readonly headWidth: number;
  readonly scale: number;

  constructor(config: GPT2Config, layerIndex: number) {
    super();
    const { n_embd, n_head } = config;
    this.headWidth = n_embd / n_head;
    this.scale =
      (config.scale_attn_weights ? 1 / Math.sqrt(this.headWidth) : 1) /
      (config.scale_attn_by_inverse_layer_idx ? layerIndex + 1 : 1);
    this.c_attn = new nn.Conv1D(n_embd, 3 * n_embd, { init: nn.normal(0, config.initializer_range) });
    this.c_proj = new nn.Conv1D(n_embd, n_embd, { init: residualInit(config) });
    this.attn_dropout = new nn.Dropout(config.attn_pdrop);
    this.resid_dropout = new nn.Dropout(config.resid_pdrop);
  }

  override forward(x: Tensor, mask?: Tensor | nn.PackedRow): Tensor {
    const projected = this.c_attn.forward(x); // [B, T, 3·H·K]
    const heads = projected.chunk(3, 2).map((part) => nn.splitHeads(part, this.headWidth)); // [B, H, T, K] each
    const [q, k, v] = heads as [Tensor, Tensor, Tensor];
    const mixed = nn.selfAttention(this, q, k, v, {
      ...nn.seenBy(mask),
      scale: this.scale,
      dropout: this.attn_dropout,
    }); // [B, H, T, K]
    return this.resid_dropout.forward(this.c_proj.forward(nn.joinHeads(mixed))); // [B, T, D]
  }
}

/** The feed-forward half of a layer. */
export class GPT2MLP extends nn.Module {
  readonly c_fc: nn.Conv1D;
  readonly c_proj: nn.Conv1D;
  readonly dropout: nn.Dropout;

  constructor(config: GPT2Config) {
    super();
    const inner = config.n_inner ?? 4 * config.n_embd;
    this.c_fc = new nn.Conv1D(config.n_embd, inner, {
      init: nn.normal(0, config.initializer_range),
      activation: config.activation_function,
    });
    this.c_proj = new nn.Conv1D(inner, config.n_embd, { init: residualInit(config) });
    this.dropout = new nn.Dropout(config.resid_pdrop);
  }

  override forward(x: Tensor): Tensor {
    return this.dropout.forward(this.c_proj.forward(this.c_fc.forward(x))); // [B, T, D] → [B, T, I] → [B, T, D]
  }
}

/** One layer: attention and feed-forward, each after a layer norm and added to the residual stream. */
export class GPT2Block extends nn.Module {
  readonly ln_1: nn.LayerNorm;
  readonly attn: GPT2Attention;
  readonly ln_2: nn.LayerNorm;
  readonly mlp: GPT2MLP;

  constructor(config: GPT2Config, layerIndex: number) {
    super();
    this.ln_1 = new nn.LayerNorm(config.n_embd, config.layer_norm_epsilon);
    this.attn = new GPT2Attention(config, layerIndex);
    this.ln_2 = new nn.LayerNorm(config.n_embd, config.layer_norm_epsilon);
    this.mlp = new GPT2MLP(config);
  }

  /** @param mask - bool, broadcast to [B, H, T, T], combined with the causal mask; or the packed texts */
  override forward(x: Tensor, mask?: Tensor | nn.PackedRow): Tensor {
    const attended = this.attn.forward(this.ln_1.forward(x), mask); // [B, T, D]
    const [sum, normed] = this.ln_2.addThenNorm(attended, x); // both [B, T, D]
    return sum.add(this.mlp.forward(normed)); // [B, T, D]
  }
}

/** The stack without an output layer. */
export class GPT2Model extends nn.Module implements NamedState, nn.TensorSplittable {
  readonly config: GPT2Config;
  readonly wte: nn.Embedding;
  readonly wpe: nn.Embedding;
  readonly drop: nn.Dropout;
  readonly h: nn.ModuleList<GPT2Block>;
  readonly ln_f: nn.LayerNorm;

  /** @throws `MODEL_CONFIG` for fields out of range */
  constructor(fields: Partial<GPT2Config> = {}) {
    super();
    const config = gpt2Config(fields);
    const init = nn.normal(0, config.initializer_range);
    this.config = config;
    this.wte = new nn.Embedding(config.vocab_size, config.n_embd, init);
    this.wpe = new nn.Embedding(config.n_positions, config.n_embd, init);
    this.drop = new nn.Dropout(config.embd_pdrop);
    this.h = nn.ModuleList.of(config.n_layer, (layer) => new GPT2Block(config, layer));
    this.ln_f = new nn.LayerNorm(config.n_embd, config.layer_norm_epsilon);
  }

  /** Names of these parameters in Hugging Face's files. */
  get stateNaming(): StateNaming {
    return causalNaming(gpt2, true);
  }

  get configJson(): NamedState["configJson"] {
    return gpt2ConfigJson(this.config, "Model");
  }

  get tensorPlan(): nn.TensorPlan {
    return { ...gpt2StackPlan(this.config), ln_f: nn.sequence({ output: "replicated" }) };
  }

  /**
   * @param inputIds - [B, T], int64, T ≤ n_positions, each in [0, vocab_size)
   * @param places.attentionMask - [B, T], with cached positions [B, S], 0 at padding, which counts in positions
   * @param places - see {@link TextPlaces}
   * @returns [B, T, D], the normed residual stream
   * @throws `MODEL_INPUT`
   */
  override forward(inputIds: Tensor, places: TextPlaces = {}): Tensor {
    const { vocab_size, n_positions } = this.config;
    const { length, mask, positions } = placesIn("GPT2Model", inputIds, places);
    checkTokenIds("GPT2Model", inputIds, vocab_size, n_positions, length);
    const placed = this.wpe.forward(positions ?? nn.positionsHere(length)); // [T, D]
    let x = this.drop.forward(this.wte.forward(inputIds).add(placed)); // [B, T, D]
    for (const block of this.h) x = block.forward(x, mask); // [B, T, D]
    return this.ln_f.forward(x); // [B, T, D]
  }
}

const gpt2: CausalFamily<GPT2Config> = {
  prefix: "transformer",
  configOf: gpt2Config,
  build: (config) => new GPT2Model(config),
  words: "wte",
  maxPositions: ({ n_positions }) => n_positions,
  plan: gpt2StackPlan,
  buffers: [/^h\.\d+\.attn\.(bias|masked_bias)$/], // the causal mask, in old files
  configJson: (config) => gpt2ConfigJson(config, "LMHeadModel"),
};

type GPT2Fields = Partial<GPT2Config>;

/** GPT-2 for causal language modelling. */
export class GPT2LMHeadModel extends ofFamily<typeof gpt2, CausalLanguageModel<GPT2Config>, GPT2Fields>(
  CausalLanguageModel,
  gpt2,
) {
  declare readonly transformer: GPT2Model;
}

// Radford et al. 2019 §2.3: the 2·n_layer additions to the residual stream keep its variance.
function residualInit(config: GPT2Config) {
  return nn.normal(0, config.initializer_range / Math.sqrt(2 * config.n_layer));
}
