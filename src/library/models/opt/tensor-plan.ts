import { below, sequence, type TensorPlan, vocabulary } from "../../../compute/nn/index.ts";
import { attentionPlan } from "../projected-attention.ts";
import { column, row } from "../uneven.ts";
import { hasLastNorm, type OPTConfig } from "./config.ts";

/** Tensor-parallel plan of OPT's stack: attention is split by heads, feed-forward halves by inner features, the embedding by words. */
export function optStackPlan(config: OPTConfig): TensorPlan {
  const { hidden_size, num_attention_heads, word_embed_proj_dim } = config;
  return below("decoder", {
    embed_tokens: vocabulary(),
    start: sequence({ input: "replicated" }),
    ...below("layers.*", {
      ...below("self_attn", attentionPlan(hidden_size, num_attention_heads)),
      self_attn_layer_norm: sequence(),
      dropout: sequence(),
      fc1: column(),
      fc2: row(),
      final_layer_norm: sequence(),
    }),
    ...(hasLastNorm(config) && { final_layer_norm: sequence() }),
    ...(word_embed_proj_dim !== hidden_size && { project_out: sequence() }),
  });
}
