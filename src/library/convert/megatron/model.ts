import { TroupeError } from "../../../errors/index.ts";
import { bartConfig } from "../../models/bart/config.ts";
import { configOfFile } from "../../models/config-fields.ts";
import { gpt2Config } from "../../models/gpt2/config.ts";
import { type MegatronBertConfig, megatronBert } from "../../models/megatron-bert/megatron.ts";
import { megatronGpt } from "../../models/gpt2/megatron.ts";
import type { MegatronModel } from "../../models/formats/megatron.ts";
import { megatronT5 } from "../../models/bart/megatron.ts";

/**
 * The Megatron-LM model that a Hugging Face config.json describes: `gpt2`, `megatron-bert`, or `blenderbot` for its T5.
 * @throws {TroupeError} `MODEL_CONFIG` for another family, for sizes that are none, and for what Megatron-LM does not have: an
 * output layer that is not the embedding, stacks of unlike layers
 */
export function megatronModel(config: Readonly<Record<string, unknown>>): MegatronModel {
  if (config.model_type === "gpt2") {
    const gpt = gpt2Config(configOfFile(config));
    check("tie_word_embeddings", gpt.tie_word_embeddings, "true, as in Megatron-LM", false);
    return megatronGpt(gpt);
  }
  if (config.model_type === "blenderbot") {
    const t5 = bartConfig(configOfFile(config));
    check("tie_word_embeddings", t5.tie_word_embeddings, "true, as in Megatron-LM", false);
    for (const field of ["attention_heads", "ffn_dim"] as const) {
      const [encoder, decoder] = [t5[`encoder_${field}`], t5[`decoder_${field}`]];
      check(`decoder_${field}`, encoder === decoder, `${encoder}, as the encoder's`, decoder);
    }
    return megatronT5(t5);
  }
  const types = "gpt2, megatron-bert or blenderbot";
  check("model_type", config.model_type === "megatron-bert", types, config.model_type);
  for (const field of ["num_hidden_layers", "num_attention_heads", "vocab_size"]) {
    const size = config[field];
    check(field, Number.isSafeInteger(size) && (size as number) >= 1, "a whole number ≥ 1", size);
  }
  return megatronBert(config as unknown as MegatronBertConfig);
}

function check(field: string, holds: boolean, expected: string, got: unknown): void {
  if (holds) return;
  throw new TroupeError(
    "MODEL_CONFIG",
    {
      where: "megatron",
      expected: `${field} to be ${expected}`,
      got: JSON.stringify(got) ?? "none",
      hint: "give the model's Hugging Face config.json",
    },
    { fields: { field, got } },
  );
}
