import { below, column, mask, row, sequence, type TensorPlan, vocabulary } from "../../nn/index.ts";

/** What of a configuration the plan depends on. */
export interface EncoderShape {
  readonly hidden_size: number;
  readonly num_attention_heads: number;
}

/**
 * How tensor parallelism splits an encoder of BERT's kind: attention by heads, the feed-forward half by inner features, the
 * embedding by words; two reductions a layer in each direction. Heads get all positions.
 * @see Shoeybi et al. 2019, "Megatron-LM", https://arxiv.org/abs/1909.08053
 */
export function encoderPlan(config: EncoderShape): TensorPlan {
  const unit = config.hidden_size / config.num_attention_heads;
  const uneven = true;
  return {
    "embeddings.word_embeddings": vocabulary(),
    "embeddings.dropout": sequence({ input: "whole" }),
    ...below("encoder.layer.*", {
      "attention.self.query": column({ unit, uneven }),
      "attention.self.key": column({ unit, uneven }),
      "attention.self.value": column({ unit, uneven }),
      "attention.self.dropout": mask(1, config.num_attention_heads), // [B, H, T, T]
      "attention.output.dense": row({ unit, uneven }),
      "attention.output.dropout": sequence(),
      "attention.output.LayerNorm": sequence(),
      "intermediate.dense": column({ uneven }),
      "output.dense": row({ uneven }),
      "output.dropout": sequence(),
      "output.LayerNorm": sequence(),
    }),
    "encoder.end": sequence({ output: "whole" }),
  };
}

/** The rule of a head over the vocabulary behind it. */
export const headOverWords = vocabulary({ input: "whole" });
