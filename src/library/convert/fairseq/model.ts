import { checkField, type FairseqModel } from "../../models/index.ts";
import { architectureOf, configHint, formOf } from "../form-of.ts";

/**
 * Maps the model of a Hugging Face config.json to FairSeq's names.
 * @throws {TroupeError} `MODEL_CONFIG` for another family, or for an untied output layer
 */
export async function fairseqModel(config: Readonly<Record<string, unknown>>): Promise<FairseqModel> {
  const form = await formOf("fairseq", "fairseq", config);
  const { tie_word_embeddings: isTied } = config;
  checkField("fairseq", "tie_word_embeddings", isTied !== false, "true, as in FairSeq", isTied, configHint);
  return form(config, architectureOf(config));
}
