import { mask, sequence, type TensorPlan, vocabulary } from "../../../compute/nn/index.ts";
import { column, row } from "../uneven.ts";
import type { GPTNeoXConfig } from "./config.ts";

/**
 * Tensor-parallel plan of GPT-NeoX's stack: attention is split by heads, each with its queries, keys and values in the fused map, the
 * feed-forward layer by inner features, the embedding by words.
 * @see Shoeybi et al. 2019, "Megatron-LM", https://arxiv.org/abs/1909.08053
 */
export function gptNeoXStackPlan({ hidden_size, num_attention_heads }: GPTNeoXConfig): TensorPlan {
  const unit = hidden_size / num_attention_heads;
  return {
    embed_in: vocabulary(),
    emb_dropout: sequence({ input: "replicated" }),
    "layers.*.input_layernorm": sequence(),
    "layers.*.attention.query_key_value": column({ unit: 3 * unit }),
    "layers.*.attention.attention_dropout": mask(1, num_attention_heads), // [B, H, T, T]
    "layers.*.attention.dense": row({ unit }),
    "layers.*.post_attention_dropout": sequence(),
    "layers.*.post_attention_layernorm": sequence(),
    "layers.*.mlp.dense_h_to_4h": column(),
    "layers.*.mlp.dense_4h_to_h": row(),
    "layers.*.post_mlp_dropout": sequence(),
    final_layer_norm: sequence(),
  };
}
