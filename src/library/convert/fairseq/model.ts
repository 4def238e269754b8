import { TroupeError } from "../../../errors/index.ts";
import type { FairseqModel } from "../../models/index.ts";
import { architectureOf, formOf } from "../form-of.ts";

/**
 * Maps the model of a Hugging Face config.json to FairSeq's names.
 * @throws {TroupeError} `MODEL_CONFIG` for another family, or for an untied output layer
 */
export async function fairseqModel(config: Readonly<Record<string, unknown>>): Promise<FairseqModel> {
  const form = await formOf("fairseq", "fairseq", config);
  if (config.tie_word_embeddings !== false) return form(config, architectureOf(config));
  throw new TroupeError("MODEL_CONFIG", {
    where: "fairseq",
    expected: "tie_word_embeddings to be true, as in FairSeq",
    got: "false",
    hint: "give the model's Hugging Face config.json",
    fields: { field: "tie_word_embeddings", got: false },
  });
}
