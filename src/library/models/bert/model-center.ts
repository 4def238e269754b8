import {
  attentionMaps,
  encoder,
  type ModelCenterForm,
  type ModelCenterTensor,
} from "../formats/model-center.ts";
import { below, modules, tensors, weights } from "../formats/weight-map.ts";
import type { BertConfig } from "./config.ts";

/** Names of a family's head for words. */
interface WordHead {
  readonly dense: string;
  readonly norm: string;
  readonly bias: string;
}

/** ModelCenter's BERT. */
const form: ModelCenterForm<BertConfig> = {
  architecture: ["Bert", "ForMaskedLM"],
  hasLabels: true,
  fields: {
    ...encoderFields(119547, 768, 12, 12),
    type_size: [2, "type_vocab_size"],
    position_size: [512, "max_position_embeddings"],
    norm_eps: [1e-12, "layer_norm_eps"],
  },
  fixed: encoder,
  fixedHere: { tie_word_embeddings: true },
  matches: (has, config) => isEncoder(has) && !("pad_token_id" in config),
  model: ({ num_hidden_layers }, head) => {
    const words: WordHead = {
      dense: "cls.predictions.transform.dense",
      norm: "cls.predictions.transform.LayerNorm",
      bias: "cls.predictions.bias",
    };
    const pooler = modules({ "pooler.dense": "bert.pooler.dense" });
    return encoderModel("bert", num_hidden_layers, head, { words, pooler });
  },
};
export default form;

/** Whether these names are of ModelCenter's BERT, or of a family like it. */
export function isEncoder(has: (part: string) => boolean): boolean {
  return has("encoder.layers.") && has("token_type_embedding.") && !has("position_bias_enc.");
}

/** Fields common to such families. */
export function encoderFields(vocabulary: number, width: number, heads: number, layers: number) {
  return {
    vocab_size: [vocabulary, "vocab_size"],
    dim_model: [width, "hidden_size"],
    num_heads: [heads, "num_attention_heads"],
    dim_ff: [4 * width, "intermediate_size"],
    num_layers: [layers, "num_hidden_layers"],
    dropout_p: [0, "hidden_dropout_prob", "attention_probs_dropout_prob"],
    att_init_std: [0.02, "initializer_range"],
    ffn_activate_fn: ["gelu", "hidden_act"],
  } as const;
}

/**
 * Maps an encoder like BERT. ModelCenter normalizes the input of each half of a layer after the sum, Hugging Face the output: each
 * norm moves one place on.
 * @param prefix - of Hugging Face's names
 * @param head - the architecture's name after `For`, empty without a head
 * @param own.pooler - name of the pooler, without a head
 */
export function encoderModel(
  prefix: string,
  numLayers: number,
  head: string,
  own: { readonly words: WordHead; readonly pooler: readonly ModelCenterTensor[] },
): ReturnType<ModelCenterForm["model"]> {
  const outNorm = (index: number) =>
    index < 0 ? `${prefix}.embeddings.LayerNorm` : `${prefix}.encoder.layer.${index}.output.LayerNorm`;
  const layers = Array.from({ length: numLayers }, (_, index) => {
    const [there, here] = [`encoder.layers.${index}`, `${prefix}.encoder.layer.${index}`];
    return [
      ...attentionMaps(`${there}.self_att`, `${here}.attention`, [
        "self.query",
        "self.key",
        "self.value",
        "output.dense",
      ]),
      ...modules({ [`${there}.self_att.layernorm_before_attention`]: outNorm(index - 1) }),
      ...below(
        `${there}.ffn`,
        here,
        modules({
          layernorm_before_ffn: "attention.output.LayerNorm",
          "ffn.w_in.w": "intermediate.dense",
          "ffn.w_out": "output.dense",
        }),
      ),
    ];
  });
  const { words, pooler } = own;
  const embeddings = `${prefix}.embeddings`;
  const heads: Readonly<Record<string, readonly ModelCenterTensor[]>> = {
    MaskedLM: [
      ...modules({ "lm_head.dense": words.dense, "lm_head.layer_norm": words.norm }),
      ...weights({ "lm_head.decoder": `${embeddings}.word_embeddings` }, { copy: "unread" as const }),
      ...tensors({ "lm_head.decoder.bias": words.bias }),
    ],
    TokenClassification: modules({ cls_projection: "classifier" }),
  };
  return {
    tensors: [
      ...weights({
        input_embedding: `${embeddings}.word_embeddings`,
        position_embedding: `${embeddings}.position_embeddings`,
        token_type_embedding: `${embeddings}.token_type_embeddings`,
      }),
      ...layers.flat(),
      ...modules({ "encoder.output_layernorm": outNorm(numLayers - 1) }),
      ...(heads[head] ?? pooler),
    ],
    ignored: [/^(lm_head|pooler|cls_projection)\./],
    ignoredHere: [/\.(position_ids|token_type_ids)$/, /^(cls\.predictions|lm_head)\.decoder\./],
  };
}
