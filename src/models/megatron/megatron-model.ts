import { TroupeError } from "../../errors.ts";
import { gpt2Config } from "../gpt2/config.ts";
import { type MegatronBertConfig, megatronBert } from "./bert.ts";
import { megatronGpt } from "./gpt.ts";
import type { MegatronModel } from "./megatron-tensor.ts";

/**
 * The Megatron-LM model that a Hugging Face config.json describes: `gpt2` or `megatron-bert`.
 * @throws {TroupeError} `MODEL_CONFIG` for another family, for sizes that are none, and for a GPT-2 whose output layer is
 * not its embedding, which Megatron-LM does not have
 */
export function megatronModel(config: Readonly<Record<string, unknown>>): MegatronModel {
  if (config.model_type === "gpt2") {
    const gpt = gpt2Config(config);
    check("tie_word_embeddings", gpt.tie_word_embeddings, "true, as in Megatron-LM", false);
    return megatronGpt(gpt);
  }
  check("model_type", config.model_type === "megatron-bert", "gpt2 or megatron-bert", config.model_type);
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
