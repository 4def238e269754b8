import { firstOf, floats, type GgufForm, isGelu, transposed, uints } from "../formats/gguf.ts";
import { biases, eachLayer, modules, tensors, weights } from "../formats/weight-map.ts";
import type { GPT2Config } from "./config.ts";

/** GPT-2 in llama.cpp. */
const form: GgufForm<GPT2Config> = {
  lacks: (config) =>
    firstOf({
      [`activation_function ${config.activation_function}`]: !isGelu(config.activation_function),
      "scores that are not divided by the root of the head's width": !config.scale_attn_weights,
      "scores that are divided by the layer's number": config.scale_attn_by_inverse_layer_idx,
    }),
  model: (config) => {
    const { n_embd, n_layer } = config;
    const maps = {
      attn_qkv: "attn.c_attn",
      attn_output: "attn.c_proj",
      ffn_up: "mlp.c_fc",
      ffn_down: "mlp.c_proj",
    };
    return {
      architecture: "gpt2",
      facts: {
        ...uints({
          vocab_size: config.vocab_size,
          context_length: config.n_positions,
          embedding_length: n_embd,
          block_count: n_layer,
          feed_forward_length: config.n_inner ?? 4 * n_embd,
          "attention.head_count": config.n_head,
        }),
        ...floats({ "attention.layer_norm_epsilon": config.layer_norm_epsilon }),
      },
      tensors: [
        ...weights({ token_embd: "transformer.wte" }),
        ...weights({ position_embd: "transformer.wpe" }, { isExact: true }),
        ...modules({ output_norm: "transformer.ln_f" }),
        ...eachLayer(n_layer, "blk", "transformer.h", [
          ...modules({ attn_norm: "ln_1", ffn_norm: "ln_2" }),
          ...weights(maps, transposed),
          ...biases(maps),
        ]),
        ...(config.tie_word_embeddings ? [] : tensors({ "output.weight": "lm_head.weight" })),
      ],
    };
  },
};
export default form;
