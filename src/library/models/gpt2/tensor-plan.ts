import { mask, sequence, type TensorPlan, vocabulary } from "../../../compute/nn/index.ts";
import { column, row } from "../uneven.ts";
import type { GPT2Config } from "./config.ts";

/**
 * Tensor-parallel plan of GPT-2's stack: attention is split by heads, the feed-forward layer by inner features, the embedding by
 * words; two reductions per layer in each direction.
 * @see Shoeybi et al. 2019, "Megatron-LM", https://arxiv.org/abs/1909.08053
 */
export function gpt2StackPlan({ n_embd, n_head }: GPT2Config): TensorPlan {
  const unit = n_embd / n_head;
  return {
    wte: vocabulary(),
    drop: sequence({ input: "replicated" }),
    "h.*.ln_1": sequence(),
    "h.*.attn.c_attn": column({ parts: 3, unit }),
    "h.*.attn.attn_dropout": mask(1, n_head), // [B, H, T, T]
    "h.*.attn.c_proj": row({ unit }),
    "h.*.attn.resid_dropout": sequence(),
    "h.*.ln_2": sequence(),
    "h.*.mlp.c_fc": column(),
    "h.*.mlp.c_proj": row(),
    "h.*.mlp.dropout": sequence(),
    ln_f: sequence(),
  };
}
