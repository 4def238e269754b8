import { mask, sequence, type TensorPlan, vocabulary } from "../../../compute/nn/index.ts";
import { column, row } from "../uneven.ts";
import type { GPTJConfig } from "./config.ts";

/** Tensor-parallel plan of GPT-J's stack: attention is split by heads, feed-forward halves by inner features, the embedding by words. */
export function gptJStackPlan({ n_embd, n_head }: GPTJConfig): TensorPlan {
  const unit = n_embd / n_head;
  const heads = column({ unit });
  return {
    wte: vocabulary(),
    drop: sequence({ input: "replicated" }),
    "h.*.ln_1": sequence(),
    "h.*.attn.q_proj": heads,
    "h.*.attn.k_proj": heads,
    "h.*.attn.v_proj": heads,
    "h.*.attn.attn_dropout": mask(1, n_head), // [B, H, T, T]
    "h.*.attn.out_proj": row({ unit }),
    "h.*.attn.resid_dropout": sequence(),
    "h.*.mlp.fc_in": column(),
    "h.*.mlp.fc_out": row(),
    "h.*.mlp.dropout": sequence(),
    ln_f: sequence(),
  };
}
