import * as nn from "../../../compute/nn/index.ts";
import { ops, type Tensor } from "../../../compute/tensor/index.ts";
import { type CausalFamily, CausalLanguageModel } from "../causal-language-model.ts";
import { configJsonOf } from "../config-fields.ts";
import type { TextPlaces } from "../language-model.ts";
import { ofFamily } from "../of-family.ts";
import { type RotaryContext, rotaryContext } from "../rotary-context.ts";
import { checkTokenIds, placesIn } from "../token-ids.ts";
import { type GPTJConfig, gptJConfig } from "./config.ts";
import { gptJStackPlan } from "./tensor-plan.ts";

// B batch, T positions, D width, H heads, K head width (D = H·K), R rotated features of a head, I inner width, V vocabulary. H, I
// and, in a layer's halves, T come from the tensors' shapes: tensor parallelism gives each rank some of the heads and inner features.

/** The base of rotary angles. */
const THETA = 10_000;

/** Causal self-attention of one layer; the first features of each head are rotated by position, in pairs of neighbours. */
class GPTJAttention extends nn.Module {
  readonly k_proj: nn.Linear;
  readonly v_proj: nn.Linear;
  readonly q_proj: nn.Linear;
  readonly out_proj: nn.Linear;
  readonly attn_dropout: nn.Dropout;
  readonly resid_dropout: nn.Dropout;
  readonly headWidth: number;
  readonly #rotaryWidth: number;

  constructor(config: GPTJConfig) {
    super();
    const { n_embd: width, n_head: numHeads, initializer_range } = config;
    const map = () => new nn.Linear(width, width, { init: nn.normal(0, initializer_range), bias: false });
    this.k_proj = map();
    this.v_proj = map();
    this.q_proj = map();
    this.out_proj = map();
    this.attn_dropout = new nn.Dropout(config.attn_pdrop);
    this.resid_dropout = new nn.Dropout(config.resid_pdrop);
    this.headWidth = width / numHeads;
    this.#rotaryWidth = config.rotary_dim;
  }

  override forward(x: Tensor, { angles, mask }: RotaryContext): Tensor {
    const heads = (map: nn.Linear) => nn.splitHeads(map.forward(x), this.headWidth); // [B, H, T, K]
    const turned = (map: nn.Linear) => nn.rotate(evenFirst(heads(map), this.#rotaryWidth), angles);
    const [k, v] = [turned(this.k_proj), heads(this.v_proj)];
    const seen = { ...nn.seenBy(mask), dropout: this.attn_dropout };
    const mixed = nn.selfAttention(this, turned(this.q_proj), k, v, seen); // [B, H, T, K]
    return this.resid_dropout.forward(this.out_proj.forward(nn.joinHeads(mixed))); // [B, T, D]
  }
}

/** The feed-forward half of a layer. */
class GPTJMLP extends nn.Module {
  readonly fc_in: nn.Linear;
  readonly fc_out: nn.Linear;
  readonly dropout: nn.Dropout;

  constructor(config: GPTJConfig) {
    super();
    const { n_embd: width, n_inner, activation_function: activation } = config;
    const inner = n_inner ?? 4 * width;
    const options = { init: nn.normal(0, config.initializer_range), biasInit: nn.zeros };
    this.fc_in = new nn.Linear(width, inner, { ...options, activation });
    this.fc_out = new nn.Linear(inner, width, options);
    this.dropout = new nn.Dropout(config.resid_pdrop);
  }

  override forward(x: Tensor): Tensor {
    return this.dropout.forward(this.fc_out.forward(this.fc_in.forward(x))); // [B, T, D] → [B, T, I] → [B, T, D]
  }
}

/** One layer: attention and feed-forward in parallel, after one norm. */
class GPTJBlock extends nn.Module {
  readonly ln_1: nn.LayerNorm;
  readonly attn: GPTJAttention;
  readonly mlp: GPTJMLP;

  constructor(config: GPTJConfig) {
    super();
    this.ln_1 = new nn.LayerNorm(config.n_embd, config.layer_norm_epsilon);
    this.attn = new GPTJAttention(config);
    this.mlp = new GPTJMLP(config);
  }

  override forward(x: Tensor, context: RotaryContext): Tensor {
    const normed = this.ln_1.forward(x); // [B, T, D]
    return this.attn.forward(normed, context).add(this.mlp.forward(normed)).add(x); // [B, T, D]
  }
}

class GPTJModel extends nn.Module {
  readonly wte: nn.Embedding;
  readonly drop: nn.Dropout;
  readonly h: nn.ModuleList<GPTJBlock>;
  readonly ln_f: nn.LayerNorm;
  readonly #config: GPTJConfig;

  constructor(config: GPTJConfig) {
    super();
    this.wte = new nn.Embedding(config.vocab_size, config.n_embd, nn.normal(0, config.initializer_range));
    this.drop = new nn.Dropout(config.embd_pdrop);
    this.h = nn.ModuleList.of(config.n_layer, () => new GPTJBlock(config));
    this.ln_f = new nn.LayerNorm(config.n_embd, config.layer_norm_epsilon);
    this.#config = config;
  }

  override forward(inputIds: Tensor, places: TextPlaces): Tensor {
    const { vocab_size, n_positions, rotary_dim } = this.#config;
    const placed = placesIn("GPTJForCausalLM", inputIds, places);
    const { length } = placed;
    checkTokenIds("GPTJForCausalLM", inputIds, vocab_size, n_positions, length);
    const angles = nn.rotaryAngles(nn.rotaryFrequencies(rotary_dim, THETA), length, nn.numPast());
    const context = rotaryContext(angles, placed);
    let x = this.drop.forward(this.wte.forward(inputIds)); // [B, T, D]
    for (const block of this.h) x = block.forward(x, context); // [B, T, D]
    return this.ln_f.forward(x); // [B, T, D]
  }
}

const gptJ: CausalFamily<GPTJConfig> = {
  prefix: "transformer",
  configOf: gptJConfig,
  build: (config) => new GPTJModel(config),
  words: "wte",
  headBias: true,
  maxPositions: ({ n_positions }) => n_positions,
  plan: gptJStackPlan,
  buffers: [/\.attn\.(bias|masked_bias|embed_positions)$/],
  configJson: (config) => configJsonOf(config, "gptj", "GPTJForCausalLM"),
};

/**
 * GPT-J for causal language modelling.
 * @see Wang and Komatsuzaki 2021, "GPT-J-6B", https://github.com/kingoflolz/mesh-transformer-jax
 */
export class GPTJForCausalLM extends ofFamily(CausalLanguageModel<GPTJConfig>, gptJ) {}

/**
 * Takes the first `width` features of each head and puts even ones before odd ones: pairs are then half of them apart, as `rotate`
 * needs. Queries and keys have the same order, so scores do not change. [B, H, T, K] → [B, H, T, K]
 */
function evenFirst(x: Tensor, width: number): Tensor {
  const [rows = 0, numHeads = 0, length = 0, headWidth = 0] = x.shape;
  const pairs = x.narrow(3, 0, width).reshape([rows, numHeads, length, width / 2, 2]);
  const apart = pairs.transpose(3, 4).reshape([rows, numHeads, length, width]);
  return width === headWidth ? apart : ops.cat([apart, x.narrow(3, width, headWidth - width)], 3);
}
