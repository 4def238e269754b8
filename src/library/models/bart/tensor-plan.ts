import { below, mask, sequence, type TensorPlan, vocabulary } from "../../../compute/nn/index.ts";
import { attentionPlan } from "../projected-attention.ts";
import { column, row } from "../uneven.ts";
import type { BartConfig } from "./config.ts";

/**
 * BART's tensor-parallel plan: attention is split by heads, feed-forward halves by inner features, the shared embedding by words;
 * every rank has all of the encoder's states.
 */
export function bartPlan(config: BartConfig): TensorPlan {
  const { d_model: width, encoder_attention_heads, decoder_attention_heads } = config;
  const { encoder_ffn_dim, decoder_ffn_dim } = config;
  const stack = (
    name: string,
    numHeads: number,
    inner: number,
    end: "replicated" | "sequence",
  ): TensorPlan => ({
    [`model.${name}.dropout`]: sequence({ input: "replicated" }),
    ...below(`model.${name}.layers.*`, {
      ...below("self_attn", attentionPlan(width, numHeads)),
      self_attn_layer_norm: sequence(),
      dropout: sequence(),
      activation_dropout: mask(2, inner), // [B, T, I]
      fc1: column(),
      fc2: row(),
      final_layer_norm: sequence(),
    }),
    ...(config.model_type === "blenderbot" && { [`model.${name}.layer_norm`]: sequence() }),
    [`model.${name}.end`]: sequence({ output: end }),
  });
  return {
    ...(config.tie_word_embeddings
      ? { "model.shared": vocabulary() }
      : { "model.encoder.embed_tokens": vocabulary(), "model.decoder.embed_tokens": vocabulary() }),
    ...stack("encoder", encoder_attention_heads, encoder_ffn_dim, "replicated"),
    ...stack("decoder", decoder_attention_heads, decoder_ffn_dim, "sequence"),
    ...below("model.decoder.layers.*", {
      ...below("encoder_attn", attentionPlan(width, decoder_attention_heads, "replicated")),
      encoder_attn_layer_norm: sequence(),
    }),
    lm_head: vocabulary(),
  };
}
