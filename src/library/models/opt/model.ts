import * as nn from "../../../compute/nn/index.ts";
import type { Tensor } from "../../../compute/tensor/index.ts";
import { type CausalFamily, CausalLanguageModel } from "../causal-language-model.ts";
import { configJsonOf } from "../config-fields.ts";
import type { TextPlaces } from "../language-model.ts";
import { ofFamily } from "../of-family.ts";
import { ProjectedAttention } from "../projected-attention.ts";
import { checkTokenIds, placesIn } from "../token-ids.ts";
import { hasLastNorm, type OPTConfig, optConfig } from "./config.ts";
import { optStackPlan } from "./tensor-plan.ts";

// B batch, T new positions, S positions so far, D width, E embedding width, I inner width, V vocabulary.

/** Rows of the table before the first position, for fairseq's special tokens; padding uses the second. */
const FIRST_POSITION = 2;

function normOf({
  hidden_size: width,
  layer_norm_elementwise_affine,
}: OPTConfig): nn.LayerNorm | nn.BareLayerNorm {
  return layer_norm_elementwise_affine ? new nn.LayerNorm(width) : new nn.BareLayerNorm();
}

/** One layer: attention and feed-forward, each after a norm, or with a norm after its sum. */
class OPTDecoderLayer extends nn.Module {
  readonly self_attn: ProjectedAttention;
  readonly self_attn_layer_norm: nn.LayerNorm | nn.BareLayerNorm;
  readonly fc1: nn.Linear;
  readonly fc2: nn.Linear;
  readonly final_layer_norm: nn.LayerNorm | nn.BareLayerNorm;
  readonly dropout: nn.Dropout;
  readonly layerdrop: nn.LayerDrop;
  readonly #normsFirst: boolean;

  constructor(config: OPTConfig) {
    super();
    const { hidden_size: width, ffn_dim: inner, enable_bias: bias, activation_function: activation } = config;
    const init = nn.normal(0, config.init_std);
    const { attention_dropout: dropout } = config;
    this.self_attn = new ProjectedAttention(width, config.num_attention_heads, { dropout, init, bias });
    this.self_attn_layer_norm = normOf(config);
    this.fc1 = new nn.Linear(width, inner, { init, bias, biasInit: nn.zeros, activation });
    this.fc2 = new nn.Linear(inner, width, { init, bias, biasInit: nn.zeros });
    this.final_layer_norm = normOf(config);
    this.dropout = new nn.Dropout(config.dropout);
    this.layerdrop = new nn.LayerDrop(config.layerdrop);
    this.#normsFirst = config.do_layer_norm_before;
  }

  /** @param mask - bool [B, 1, 1, S], false at padding; or the packed texts */
  override forward(x: Tensor, mask: Tensor | nn.PackedRow | undefined): Tensor {
    const attend = (own: Tensor) => this.self_attn.forward(own, { causal: true, mask });
    if (!this.#normsFirst) {
      const [, attended] = this.self_attn_layer_norm.addThenNorm(this.dropout.forward(attend(x)), x);
      const [, fed] = this.final_layer_norm.addThenNorm(this.#feed(attended), attended);
      return this.layerdrop.forward(fed, x);
    }
    const attended = this.dropout.forward(attend(this.self_attn_layer_norm.forward(x))); // [B, T, D]
    const [sum, normed] = this.final_layer_norm.addThenNorm(attended, x); // both [B, T, D]
    return this.layerdrop.forward(sum.add(this.#feed(normed)), x);
  }

  #feed(x: Tensor): Tensor {
    return this.dropout.forward(this.fc2.forward(this.fc1.forward(x))); // [B, T, D] → [B, T, I] → [B, T, D]
  }
}

/** OPT's stack without an output layer. */
class OPTDecoder extends nn.Module {
  readonly embed_tokens: nn.Embedding;
  readonly embed_positions: nn.Embedding;
  /** Maps embeddings to the stream's width, and back; null if the widths are equal. */
  readonly project_in: nn.Linear | null;
  readonly project_out: nn.Linear | null;
  /** Marks the start of the layers. */
  readonly start: nn.Identity;
  readonly layers: nn.ModuleList<OPTDecoderLayer>;
  readonly final_layer_norm: nn.LayerNorm | nn.BareLayerNorm | null;
  readonly #config: OPTConfig;

  constructor(config: OPTConfig) {
    super();
    const { vocab_size, hidden_size: width, word_embed_proj_dim: wordWidth } = config;
    const init = nn.normal(0, config.init_std);
    const map = (numInputs: number, numOutputs: number) =>
      wordWidth === width ? null : new nn.Linear(numInputs, numOutputs, { init, bias: false });
    this.embed_tokens = new nn.Embedding(vocab_size, wordWidth, init, config.pad_token_id ?? undefined);
    this.embed_positions = new nn.Embedding(config.max_position_embeddings + FIRST_POSITION, width, init);
    this.project_in = map(wordWidth, width);
    this.project_out = map(width, wordWidth);
    this.start = new nn.Identity();
    this.layers = nn.ModuleList.of(config.num_hidden_layers, () => new OPTDecoderLayer(config));
    this.final_layer_norm = hasLastNorm(config) ? normOf(config) : null;
    this.#config = config;
  }

  /** @returns [B, T, E] @throws {TroupeError} `MODEL_INPUT` */
  override forward(inputIds: Tensor, places: TextPlaces): Tensor {
    const { vocab_size, max_position_embeddings } = this.#config;
    const { length, mask, positions } = placesIn("OPTForCausalLM", inputIds, places);
    checkTokenIds("OPTForCausalLM", inputIds, vocab_size, max_position_embeddings, length);
    const { attentionMask } = places;
    const counted = attentionMask ? positionsAmong(attentionMask, length) : nn.positionsHere(length);
    const placed = this.embed_positions.forward((positions ?? counted).add(FIRST_POSITION)); // [T, D] or [B, T, D]
    const words = this.embed_tokens.forward(inputIds); // [B, T, E]
    let x = this.start.forward((this.project_in?.forward(words) ?? words).add(placed)); // [B, T, D]
    for (const layer of this.layers) x = layer.forward(x, mask); // [B, T, D]
    const normed = this.final_layer_norm?.forward(x) ?? x;
    return this.project_out?.forward(normed) ?? normed; // [B, T, E]
  }
}

class OPTModel extends nn.Module {
  readonly decoder: OPTDecoder;

  constructor(config: OPTConfig) {
    super();
    this.decoder = new OPTDecoder(config);
  }

  override forward(inputIds: Tensor, places: TextPlaces): Tensor {
    return this.decoder.forward(inputIds, places);
  }
}

const opt: CausalFamily<OPTConfig> = {
  prefix: "model",
  configOf: optConfig,
  build: (config) => new OPTModel(config),
  words: "decoder.embed_tokens",
  maxPositions: ({ max_position_embeddings }) => max_position_embeddings,
  plan: optStackPlan,
  configJson: (config) => configJsonOf(config, "opt", "OPTForCausalLM"),
};

/**
 * OPT for causal language modelling. Padding does not count in positions.
 * @see Zhang et al. 2022, https://arxiv.org/abs/2205.01068
 */
export class OPTForCausalLM extends ofFamily(CausalLanguageModel<OPTConfig>, opt) {}

/** Positions without padding, from 0; −1 at padding: [B, S] → [B, T]. */
function positionsAmong(attentionMask: Tensor, length: number): Tensor {
  const present = attentionMask.to("int64");
  const counted = present.cumsum(1).mul(present).sub(1);
  return counted.narrow(1, nn.numPast(), length);
}
