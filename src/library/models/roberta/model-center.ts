import { encoderFields, encoderModel, isEncoder } from "../bert/model-center.ts";
import { encoder, type ModelCenterForm } from "../formats/model-center.ts";
import type { RobertaConfig } from "./config.ts";

/** ModelCenter's RoBERTa; a field of config.json distinguishes it from BERT. */
const form: ModelCenterForm<RobertaConfig> = {
  architecture: ["Roberta", "ForMaskedLM"],
  hasLabels: true,
  fields: {
    ...encoderFields(50265, 1024, 16, 24),
    type_size: [1, "type_vocab_size"],
    position_size: [514, "max_position_embeddings"],
    norm_eps: [1e-5, "layer_norm_eps"],
    pad_token_id: [1, "pad_token_id"],
  },
  fixed: encoder,
  fixedHere: { tie_word_embeddings: true },
  matches: (has, config) => isEncoder(has) && "pad_token_id" in config,
  model: ({ num_hidden_layers }, head) => {
    const words = { dense: "lm_head.dense", norm: "lm_head.layer_norm", bias: "lm_head.bias" };
    return encoderModel("roberta", num_hidden_layers, head, { words, pooler: [] });
  },
};
export default form;
