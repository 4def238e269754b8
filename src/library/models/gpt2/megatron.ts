import { configOfFile } from "../config-fields.ts";
import { checkMegatron, type MegatronForm, megatronLayer } from "../formats/megatron.ts";
import { modules, weights } from "../formats/weight-map.ts";
import { gpt2Config } from "./config.ts";

/** GPT-2 in Megatron-LM. Its matrices are [out, in] there, and [in, out] in Hugging Face. */
const form: MegatronForm = (given) => {
  const { n_layer, n_head, vocab_size, tie_word_embeddings: isTied } = gpt2Config(configOfFile(given));
  checkMegatron("tie_word_embeddings", isTied, "true, as in Megatron-LM", false);
  const layers = Array.from({ length: n_layer }, (_, index) =>
    megatronLayer(index, `transformer.h.${index}`, {
      norms: ["ln_1", "ln_2"],
      attention: ["attn.c_attn"],
      attentionOut: "attn.c_proj",
      feedForward: ["mlp.c_fc", "mlp.c_proj"],
      transposed: true,
    }),
  );
  const embedding = "language_model.embedding";
  const place = "first";
  return {
    numLayers: n_layer,
    numHeads: n_head,
    vocabSize: vocab_size,
    isPipelined: true,
    tensors: [
      ...weights(
        { [`${embedding}.word_embeddings`]: ["transformer.wte"] },
        { place, splitDim: 0, perToken: true },
      ),
      ...weights({ [`${embedding}.position_embeddings`]: ["transformer.wpe"] }, { place }),
      ...layers.flat(),
      ...modules({ "language_model.encoder.final_layernorm": ["transformer.ln_f"] }, { place: "last" }),
    ],
  };
};
export default form;
