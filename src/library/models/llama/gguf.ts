import { rotaryFrequencies } from "../../../compute/nn/index.ts";
import type { Tensor } from "../../../compute/tensor/index.ts";
import { firstOf, floats, type GgufForm, ropeFacts, uints, unknownRope } from "../formats/gguf.ts";
import { eachLayer, modules, tensors, weights } from "../formats/weight-map.ts";
import { scalingOf } from "../rope-parameters.ts";
import { biasesOf, type LlamaConfig, windowOf } from "./config.ts";

/** LLaMA, Mistral and Qwen2 in llama.cpp, whose `llama` turns neighbouring features of a head together, not those of its halves. */
const form: GgufForm<LlamaConfig> = {
  lacks: ({ hidden_act, rope_parameters: rope, model_type }) =>
    firstOf({ [`hidden_act ${hidden_act}`]: hidden_act !== "silu" }) ??
    unknownRope(rope, model_type === "qwen2" ? ["linear", "yarn"] : ["linear", "yarn", "llama3"]),
  model: (config) => {
    const { num_attention_heads: heads, num_key_value_heads: groups, head_dim, model_type } = config;
    const { num_hidden_layers, rope_parameters: rope } = config;
    const isQwen = model_type === "qwen2";
    const { qkv, out, feedForward } = biasesOf(config);
    const inPairs = (count: number) => (isQwen ? {} : { change: (values: Tensor) => paired(values, count) });
    const ofAttention = qkv ? modules : weights;
    const ofOutput = out ? modules : weights;
    const ofFeedForward = feedForward ? modules : weights;
    return {
      architecture: isQwen ? "qwen2" : "llama",
      facts: {
        ...uints({
          vocab_size: config.vocab_size,
          context_length: contextOf(config),
          embedding_length: config.hidden_size,
          block_count: num_hidden_layers,
          feed_forward_length: config.intermediate_size,
          "attention.head_count": heads,
          "attention.head_count_kv": groups,
          "attention.key_length": head_dim,
          "attention.value_length": head_dim,
        }),
        ...floats({ "attention.layer_norm_rms_epsilon": config.rms_norm_eps }),
        ...ropeFacts(rope, head_dim),
      },
      tensors: [
        ...weights({ token_embd: "model.embed_tokens", output_norm: "model.norm" }),
        ...eachLayer(num_hidden_layers, "blk", "model.layers", [
          ...weights({ attn_norm: "input_layernorm", ffn_norm: "post_attention_layernorm" }),
          ...ofAttention({ attn_q: "self_attn.q_proj" }, inPairs(heads)),
          ...ofAttention({ attn_k: "self_attn.k_proj" }, inPairs(groups)),
          ...ofAttention({ attn_v: "self_attn.v_proj" }),
          ...ofOutput({ attn_output: "self_attn.o_proj" }),
          ...ofFeedForward({ ffn_gate: "mlp.gate_proj", ffn_up: "mlp.up_proj", ffn_down: "mlp.down_proj" }),
        ]),
        ...(config.tie_word_embeddings ? [] : tensors({ "output.weight": "lm_head.weight" })),
      ],
      ...(rope.rope_type === "llama3" && { computed: { "rope_freqs.weight": divisorsOf(config) } }),
    };
  },
};
export default form;

/** llama.cpp's `llama` and `qwen2` attend to all positions: their texts are at most as long as a window. */
function contextOf(config: LlamaConfig): number {
  const windows = Array.from(
    { length: config.num_hidden_layers },
    (_, layer) => windowOf(config, layer) ?? Number.POSITIVE_INFINITY,
  );
  return Math.min(config.max_position_embeddings, ...windows);
}

/** Rows of each head from halves, whose features turn in pairs, to pairs. @param values - [heads · K] or [heads · K, in] */
function paired(values: Tensor, heads: number): Tensor {
  const [rows = 0, ...inputs] = values.shape;
  const halves = values.view([heads, 2, rows / heads / 2, ...inputs]);
  return halves.transpose(1, 2).reshape([rows, ...inputs]);
}

/** The divisor of each pair's angle. */
function divisorsOf(config: LlamaConfig): number[] {
  const { head_dim, rope_parameters } = config;
  const usual = rotaryFrequencies(head_dim, rope_parameters.rope_theta);
  const scaled = rotaryFrequencies(head_dim, rope_parameters.rope_theta, scalingOf(config));
  return usual.map((frequency, pair) => frequency / (scaled[pair] ?? frequency));
}
