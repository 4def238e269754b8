import type { Tensor } from "../../../compute/tensor/index.ts";
import { firstOf, floats, type GgufForm, isGelu, ropeFacts, uints, unknownRope } from "../formats/gguf.ts";
import { eachLayer, modules, tensors, weights } from "../formats/weight-map.ts";
import { type GPTNeoXConfig, rotaryWidth } from "./config.ts";

/** GPT-NeoX in llama.cpp, whose fused map has the queries of all heads, then the keys, then the values. */
const form: GgufForm<GPTNeoXConfig> = {
  lacks: (config) =>
    firstOf({
      [`hidden_act ${config.hidden_act}`]: !isGelu(config.hidden_act),
      "attention without biases": !config.attention_bias,
    }) ?? unknownRope(config.rope_parameters, ["linear", "yarn"]),
  model: (config) => {
    const { num_hidden_layers, num_attention_heads: heads } = config;
    const apart = (values: Tensor) => {
      const [rows = 0, ...inputs] = values.shape;
      const each = values.view([heads, 3, rows / heads / 3, ...inputs]);
      return each.transpose(0, 1).reshape([rows, ...inputs]);
    };
    return {
      architecture: "gptneox",
      facts: {
        ...uints({
          vocab_size: config.vocab_size,
          context_length: config.max_position_embeddings,
          embedding_length: config.hidden_size,
          block_count: num_hidden_layers,
          feed_forward_length: config.intermediate_size,
          "attention.head_count": heads,
        }),
        ...floats({ "attention.layer_norm_epsilon": config.layer_norm_eps }),
        ...ropeFacts(config.rope_parameters, rotaryWidth(config)),
        use_parallel_residual: { flag: config.use_parallel_residual },
      },
      tensors: [
        ...weights({ token_embd: "gpt_neox.embed_in" }),
        ...modules({ output_norm: "gpt_neox.final_layer_norm" }),
        ...eachLayer(num_hidden_layers, "blk", "gpt_neox.layers", [
          ...modules({ attn_norm: "input_layernorm", ffn_norm: "post_attention_layernorm" }),
          ...modules({ attn_qkv: "attention.query_key_value" }, { change: apart }),
          ...modules({
            attn_output: "attention.dense",
            ffn_up: "mlp.dense_h_to_4h",
            ffn_down: "mlp.dense_4h_to_h",
          }),
        ]),
        ...tensors({
          "output.weight": config.tie_word_embeddings ? "gpt_neox.embed_in.weight" : "lm_head.weight",
        }),
      ],
    };
  },
};
export default form;
