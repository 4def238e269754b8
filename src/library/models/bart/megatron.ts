import { configOfFile } from "../config-fields.ts";
import { checkMegatron, type MegatronForm, type MegatronTensor, megatronLayer } from "../formats/megatron.ts";
import { biases, modules, tensors, weights } from "../formats/weight-map.ts";
import { bartConfig } from "./config.ts";

/** The first stage: an encoder-decoder cannot be pipelined. */
const place = "first";

/**
 * Megatron-LM's T5, which has learned positions and norms before each half of a layer: Hugging Face's `blenderbot`, not `t5`. Both
 * stacks share one table of positions, of which Hugging Face's model has two; the bias of the logits is trained there.
 */
const form: MegatronForm = (given) => {
  const config = bartConfig(configOfFile(given));
  checkMegatron("tie_word_embeddings", config.tie_word_embeddings, "true, as in Megatron-LM", false);
  for (const field of ["attention_heads", "ffn_dim"] as const) {
    const [ofEncoder, ofDecoder] = [config[`encoder_${field}`], config[`decoder_${field}`]];
    checkMegatron(`decoder_${field}`, ofEncoder === ofDecoder, `${ofEncoder}, as the encoder's`, ofDecoder);
  }
  const { encoder_layers, decoder_layers, encoder_attention_heads, vocab_size } = config;
  const embedding = "language_model.embedding";
  return {
    numLayers: encoder_layers + decoder_layers,
    numHeads: encoder_attention_heads,
    vocabSize: vocab_size,
    isPipelined: false,
    tensors: [
      ...weights(
        { [`${embedding}.word_embeddings`]: ["model.shared"] },
        { place, splitDim: 0, perToken: true },
      ),
      ...weights(
        { [`${embedding}.position_embeddings`]: ["model.encoder.embed_positions"] },
        { place, copies: ["model.decoder.embed_positions.weight"] },
      ),
      ...stack("encoder", encoder_layers),
      ...stack("decoder", decoder_layers),
      ...Array.from({ length: decoder_layers }, (_, index) => interAttention(index)).flat(),
      ...tensors(
        { "lm_head.bias": ["final_logits_bias"] },
        { place, splitDim: 0, perToken: true, asRow: true },
      ),
    ],
  };
};
export default form;

function stack(name: "encoder" | "decoder", numLayers: number): MegatronTensor[] {
  const layers = Array.from({ length: numLayers }, (_, index) =>
    megatronLayer(
      index,
      `model.${name}.layers.${index}`,
      {
        // The norm after self-attention belongs to the next half.
        norms: ["self_attn_layer_norm", name === "encoder" ? "final_layer_norm" : "encoder_attn_layer_norm"],
        attention: ["q_proj", "k_proj", "v_proj"].map((part) => `self_attn.${part}`),
        attentionOut: "self_attn.out_proj",
        feedForward: ["fc1", "fc2"],
        transposed: false,
      },
      { stack: name, place },
    ),
  );
  return [
    ...layers.flat(),
    ...modules({ [`language_model.${name}.final_layernorm`]: [`model.${name}.layer_norm`] }, { place }),
  ];
}

function interAttention(index: number): MegatronTensor[] {
  const named = (name: string, ...parts: readonly string[]) => ({
    [`language_model.decoder.layers.${index}.${name}`]: parts.map(
      (part) => `model.decoder.layers.${index}.${part}`,
    ),
  });
  const dense = named("inter_attention.dense", "encoder_attn.out_proj");
  return [
    ...modules(named("inter_attention.query", "encoder_attn.q_proj"), { place, splitDim: 0 }),
    ...modules(named("inter_attention.key_value", "encoder_attn.k_proj", "encoder_attn.v_proj"), {
      place,
      splitDim: 0,
      fused: 2,
    }),
    ...weights(dense, { place, splitDim: 1 }),
    ...biases(dense, { place }),
    ...modules(named("post_inter_attention_layernorm", "final_layer_norm"), { place }),
  ];
}
