import { mask, sequence, type TensorPlan, vocabulary } from "../../../compute/nn/index.ts";
import { column, row } from "../uneven.ts";
import type { LlamaConfig } from "./config.ts";

/**
 * Tensor-parallel plan of LLaMA's stack: attention is split by query heads, with their key/value heads (copied to all ranks that need
 * them), the feed-forward layer by inner features, the embedding by words; two reductions per layer in each direction.
 * @see Shoeybi et al. 2019, "Megatron-LM", https://arxiv.org/abs/1909.08053
 */
export function llamaStackPlan(config: LlamaConfig): TensorPlan {
  const { head_dim: unit, num_attention_heads, num_key_value_heads } = config;
  const readers = num_attention_heads / num_key_value_heads;
  return {
    embed_tokens: vocabulary(),
    start: sequence({ input: "replicated" }),
    "layers.*.input_layernorm": sequence(),
    "layers.*.self_attn.q_proj": column({ unit }),
    "layers.*.self_attn.k_proj": column({ unit, readers }),
    "layers.*.self_attn.v_proj": column({ unit, readers }),
    "layers.*.self_attn.dropout": mask(1, num_attention_heads), // [B, H, T, T]
    "layers.*.self_attn.o_proj": row({ unit }),
    "layers.*.post_attention_layernorm": sequence(),
    "layers.*.mlp.gate_proj": column(),
    "layers.*.mlp.up_proj": column(),
    "layers.*.mlp.down_proj": row(),
    norm: sequence(),
  };
}
