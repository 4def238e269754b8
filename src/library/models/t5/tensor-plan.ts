import { below, features, mask, sequence, type TensorPlan, vocabulary } from "../../../compute/nn/index.ts";
import { column, row } from "../uneven.ts";
import { feedForwardOf, type T5Config } from "./config.ts";

/**
 * T5's tensor-parallel plan: attention and its relative bias are split by heads, feed-forward layers by inner features, the shared
 * embedding by words; every rank has all of the encoder's states.
 * @see Shoeybi et al. 2019, "Megatron-LM", https://arxiv.org/abs/1909.08053
 */
export function t5Plan(config: T5Config): TensorPlan {
  const { isGated } = feedForwardOf(config);
  const unit = config.d_kv;
  const attention = (input?: "replicated"): TensorPlan => ({
    q: column({ unit }),
    k: column({ unit, input }),
    v: column({ unit, input }),
    dropout: mask(1, config.num_heads), // [B, H, T, S]
    o: row({ unit }),
  });
  const around: TensorPlan = { layer_norm: sequence(), dropout: sequence() };
  const feedForward: TensorPlan = {
    ...(isGated ? { wi_0: column(), wi_1: column() } : { wi: column() }),
    dropout: mask(2, config.d_ff), // [B, T, I]
    wo: row(),
  };
  const stack = (name: string, end: "replicated" | "sequence"): TensorPlan => ({
    [`${name}.dropout`]: sequence({ input: "replicated" }),
    [`${name}.block.0.layer.0.SelfAttention.relative_attention_bias`]: features(),
    ...below(`${name}.block.*.layer.0`, { ...around, ...below("SelfAttention", attention()) }),
    [`${name}.final_layer_norm`]: sequence(),
    [`${name}.final_dropout`]: sequence({ output: end }),
  });
  return {
    shared: vocabulary(),
    ...stack("encoder", "replicated"),
    ...below("encoder.block.*.layer.1", { ...around, ...below("DenseReluDense", feedForward) }),
    ...stack("decoder", "sequence"),
    ...below("decoder.block.*.layer.1", { ...around, ...below("EncDecAttention", attention("replicated")) }),
    ...below("decoder.block.*.layer.2", { ...around, ...below("DenseReluDense", feedForward) }),
    lm_head: vocabulary(),
  };
}
