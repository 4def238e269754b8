import {
  type MegatronModel,
  type MegatronTensor,
  megatronLayer,
  megatronModule,
  megatronTensor,
} from "../formats/megatron.ts";

/** What the names of a T5 depend on, by the field names of its config.json. */
export interface MegatronT5Config {
  readonly encoder_layers: number;
  readonly decoder_layers: number;
  readonly encoder_attention_heads: number;
  readonly vocab_size: number;
}

/**
 * Megatron-LM's T5, whose positions are learned and whose norms stand in front of the halves of a layer: Hugging Face's
 * `blenderbot`, not its `t5`. Both stacks read one table of positions, of which Hugging Face's model has two; what is added to
 * the logits is trained there.
 */
export function megatronT5(config: MegatronT5Config): MegatronModel {
  const embedding = "language_model.embedding";
  return {
    numLayers: config.encoder_layers + config.decoder_layers,
    numHeads: config.encoder_attention_heads,
    vocabSize: config.vocab_size,
    isPipelined: false,
    tensors: [
      megatronTensor("first", `${embedding}.word_embeddings.weight`, "model.shared.weight", {
        splitDim: 0,
        perToken: true,
      }),
      megatronTensor(
        "first",
        `${embedding}.position_embeddings.weight`,
        "model.encoder.embed_positions.weight",
        { copies: ["model.decoder.embed_positions.weight"] },
      ),
      ...stack("encoder", config.encoder_layers),
      ...stack("decoder", config.decoder_layers),
      ...range(config.decoder_layers).flatMap(interAttention),
      megatronTensor("first", "lm_head.bias", "final_logits_bias", {
        splitDim: 0,
        perToken: true,
        asRow: true,
      }),
    ],
  };
}

function stack(name: "encoder" | "decoder", numLayers: number): MegatronTensor[] {
  const layers = range(numLayers).flatMap((index) => {
    const layer = `model.${name}.layers.${index}`;
    return megatronLayer(
      index,
      {
        // Behind self-attention stands the norm of what comes next.
        norms: [
          `${layer}.self_attn_layer_norm`,
          `${layer}.${name === "encoder" ? "final_layer_norm" : "encoder_attn_layer_norm"}`,
        ],
        attention: ["q_proj", "k_proj", "v_proj"].map((part) => `${layer}.self_attn.${part}`),
        attentionOut: `${layer}.self_attn.out_proj`,
        feedForward: [`${layer}.fc1`, `${layer}.fc2`],
        transposed: false,
      },
      { stack: name, place: "first" },
    );
  });
  return [
    ...layers,
    ...megatronModule("first", `language_model.${name}.final_layernorm`, [`model.${name}.layer_norm`]),
  ];
}

function interAttention(index: number): MegatronTensor[] {
  const [megatron, ours] = [`language_model.decoder.layers.${index}`, `model.decoder.layers.${index}`];
  const both = (name: string, parts: readonly string[], ...forms: Forms) =>
    megatronModule(
      "first",
      `${megatron}.${name}`,
      parts.map((part) => `${ours}.${part}`),
      ...forms,
    );
  const byHeads = { splitDim: 0, fused: 2 } as const;
  const keys = ["encoder_attn.k_proj", "encoder_attn.v_proj"];
  return [
    ...both("inter_attention.query", ["encoder_attn.q_proj"], { splitDim: 0 }, { splitDim: 0 }),
    ...both("inter_attention.key_value", keys, byHeads, byHeads),
    ...both("inter_attention.dense", ["encoder_attn.out_proj"], { splitDim: 1 }),
    ...both("post_inter_attention_layernorm", ["final_layer_norm"]),
  ];
}

type Forms = [weight?: Parameters<typeof megatronModule>[3], bias?: Parameters<typeof megatronModule>[4]];

function range(length: number): number[] {
  return Array.from({ length }, (_, index) => index);
}
