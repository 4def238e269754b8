import { below, mask, sequence, type TensorPlan, vocabulary } from "../../../compute/nn/index.ts";
import { column, row } from "../uneven.ts";
import type { AlbertConfig } from "./config.ts";

/** ALBERT's tensor-parallel plan: like BERT's, with one entry per group. */
export function albertPlan({ hidden_size, num_attention_heads }: AlbertConfig): TensorPlan {
  const unit = hidden_size / num_attention_heads;
  return {
    "embeddings.word_embeddings": vocabulary(),
    "encoder.embedding_hidden_mapping_in": sequence({ input: "replicated" }),
    ...below("encoder.albert_layer_groups.*.albert_layers.*", {
      "attention.query": column({ unit }),
      "attention.key": column({ unit }),
      "attention.value": column({ unit }),
      "attention.attention_dropout": mask(1, num_attention_heads), // [B, H, T, T]
      "attention.dense": row({ unit }),
      "attention.output_dropout": sequence(),
      "attention.LayerNorm": sequence(),
      ffn: column(),
      ffn_output: row(),
      full_layer_layer_norm: sequence(),
    }),
    "encoder.end": sequence({ output: "replicated" }),
  };
}
