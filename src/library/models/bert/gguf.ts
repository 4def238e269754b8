import type { Tensor } from "../../../compute/tensor/index.ts";
import { firstOf, floats, type GgufForm, isGelu, uints } from "../formats/gguf.ts";
import { eachLayer, modules, weights } from "../formats/weight-map.ts";
import type { BertConfig } from "./config.ts";

/** llama.cpp's numbers of how a text's vectors become one: their mean, or a head's scores. */
const pooling = { mean: 1, rank: 4 } as const;

/** BERT in llama.cpp, which computes vectors of texts, or a classifier's scores. */
export default bertForm({
  prefix: "bert",
  classifier: { cls: "bert.pooler.dense", "cls.output": "classifier" },
  firstPosition: () => 0,
});

/** The form of a family like BERT. */
export function bertForm<Config extends BertConfig>({
  prefix,
  classifier,
  firstPosition,
}: {
  readonly prefix: string;
  /** Modules of the head for classification. */
  readonly classifier: Readonly<Record<string, string>>;
  /** Row of the first position's vector. */
  firstPosition(config: Config): number;
}): GgufForm<Config> {
  return {
    lacks: ({ hidden_act }, task) =>
      firstOf({
        [`a head for ${task}`]: !["masked_lm", "pretraining", "sequence_classification"].includes(task),
        [`hidden_act ${hidden_act}`]: !isGelu(hidden_act),
      }),
    model: (config, task) => {
      const { num_hidden_layers, max_position_embeddings, id2label } = config;
      const isClassifier = task === "sequence_classification";
      const first = firstPosition(config);
      const numPositions = max_position_embeddings - first;
      const fromFirst = (values: Tensor) => values.narrow(0, first, numPositions);
      return {
        architecture: "bert",
        facts: {
          ...uints({
            vocab_size: config.vocab_size,
            context_length: numPositions,
            embedding_length: config.hidden_size,
            block_count: num_hidden_layers,
            feed_forward_length: config.intermediate_size,
            "attention.head_count": config.num_attention_heads,
            pooling_type: isClassifier ? pooling.rank : pooling.mean,
          }),
          ...floats({ "attention.layer_norm_epsilon": config.layer_norm_eps }),
          "attention.causal": { flag: false },
          ...(isClassifier && {
            "classifier.output_labels": {
              texts: Object.keys(id2label).map((_, label) => id2label[label] ?? `LABEL_${label}`),
            },
          }),
        },
        otherFacts: uints({ "tokenizer.ggml.token_type_count": config.type_vocab_size }),
        tensors: [
          ...weights({ token_embd: `${prefix}.embeddings.word_embeddings` }),
          ...weights(
            { position_embd: `${prefix}.embeddings.position_embeddings` },
            { change: fromFirst, isExact: true },
          ),
          ...weights({ token_types: `${prefix}.embeddings.token_type_embeddings` }, { isExact: true }),
          ...modules({ token_embd_norm: `${prefix}.embeddings.LayerNorm` }),
          ...eachLayer(
            num_hidden_layers,
            "blk",
            `${prefix}.encoder.layer`,
            modules({
              attn_q: "attention.self.query",
              attn_k: "attention.self.key",
              attn_v: "attention.self.value",
              attn_output: "attention.output.dense",
              attn_output_norm: "attention.output.LayerNorm",
              ffn_up: "intermediate.dense",
              ffn_down: "output.dense",
              layer_output_norm: "output.LayerNorm",
            }),
          ),
          ...(isClassifier ? modules(classifier) : []),
        ],
        unread: /^(cls|lm_head)\.|\.pooler\./,
      };
    },
  };
}
