import type { Tensor } from "../../../compute/tensor/index.ts";
import { firstOf, floats, type GgufForm, isGelu, uints } from "../formats/gguf.ts";
import { eachLayer, tensors, weights } from "../formats/weight-map.ts";
import { feedForwardOf, type T5Config } from "./config.ts";

/** Distance from which llama.cpp has one bias for all positions. */
const MOST_DISTANCE = 128;

/** Positions are relative: a context of this length is what T5 was trained with. */
const CONTEXT = 512;

/** T5 in llama.cpp, which has an activation of its own for gated and for plain layers, and does not scale the decoder's output. */
const form: GgufForm<T5Config> = {
  lacks: (config) => {
    const { activation, isGated } = feedForwardOf(config);
    const { relative_attention_max_distance: distance, num_layers, num_decoder_layers } = config;
    return firstOf({
      [`feed_forward_proj ${config.feed_forward_proj}`]: isGated
        ? !isGelu(activation)
        : activation !== "relu",
      [`relative_attention_max_distance ${distance}`]: distance !== MOST_DISTANCE,
      // Its releases until v0.5 have room for as many layers as the encoder has.
      [`num_decoder_layers ${num_decoder_layers} above num_layers`]: num_decoder_layers > num_layers,
    });
  },
  model: (config) => {
    const { num_layers, num_decoder_layers, d_model, scale_decoder_outputs } = config;
    const scale = scale_decoder_outputs ? 1 / Math.sqrt(d_model) : 1;
    const { isGated } = feedForwardOf(config);
    const attention = (prefix: string, half: number, name: string) =>
      weights(
        Object.fromEntries(
          ["q", "k", "v", "o"].map((map) => [`${prefix}_${map}`, `layer.${half}.${name}.${map}`]),
        ),
      );
    const norm = (there: string, half: number) => weights({ [there]: `layer.${half}.layer_norm` });
    const feedForward = (half: number) => {
      const inner = isGated ? { ffn_gate: "wi_0", ffn_up: "wi_1" } : { ffn_up: "wi" };
      const maps = Object.entries({ ...inner, ffn_down: "wo" });
      return [
        ...norm("ffn_norm", half),
        ...weights(
          Object.fromEntries(maps.map(([there, map]) => [there, `layer.${half}.DenseReluDense.${map}`])),
        ),
      ];
    };
    const own = [...norm("attn_norm", 0), ...attention("attn", 0, "SelfAttention")];
    const crossed = [...norm("cross_attn_norm", 1), ...attention("cross_attn", 1, "EncDecAttention")];
    const bias = (stack: string) => `${stack}.block.0.layer.0.SelfAttention.relative_attention_bias`;
    return {
      architecture: "t5",
      facts: {
        ...uints({
          vocab_size: config.vocab_size,
          context_length: CONTEXT,
          embedding_length: d_model,
          feed_forward_length: config.d_ff,
          block_count: num_layers,
          decoder_block_count: num_decoder_layers,
          decoder_start_token_id: config.decoder_start_token_id,
          "attention.head_count": config.num_heads,
          "attention.key_length": config.d_kv,
          "attention.value_length": config.d_kv,
          "attention.relative_buckets_count": config.relative_attention_num_buckets,
        }),
        ...floats({
          "attention.layer_norm_epsilon": config.layer_norm_epsilon,
          "attention.layer_norm_rms_epsilon": config.layer_norm_epsilon,
        }),
      },
      tensors: [
        ...weights({ token_embd: "shared" }),
        ...weights(
          { "enc.blk.0.attn_rel_b": bias("encoder"), "dec.blk.0.attn_rel_b": bias("decoder") },
          {
            isExact: true,
          },
        ),
        ...eachLayer(num_layers, "enc.blk", "encoder.block", [...own, ...feedForward(1)]),
        ...eachLayer(num_decoder_layers, "dec.blk", "decoder.block", [...own, ...crossed, ...feedForward(2)]),
        ...weights({ "enc.output_norm": "encoder.final_layer_norm" }),
        ...weights(
          { "dec.output_norm": "decoder.final_layer_norm" },
          { change: (values: Tensor) => values.mul(scale) },
        ),
        ...(config.tie_word_embeddings ? [] : tensors({ "output.weight": "lm_head.weight" })),
      ],
    };
  },
};
export default form;
