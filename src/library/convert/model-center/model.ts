import { TroupeError } from "../../../errors/index.ts";
import { configOfFile } from "../../models/config-fields.ts";
import { gptJConfig } from "../../models/gpt-j/config.ts";
import { gpt2Config } from "../../models/gpt2/config.ts";
import { llamaConfig } from "../../models/llama/config.ts";
import { optConfig } from "../../models/opt/config.ts";
import { t5Config } from "../../models/t5/config.ts";
import { architectureOf, toModelCenterConfig } from "./config.ts";
import { modelCenterGpt2, modelCenterGptJ, modelCenterLlama, modelCenterOpt } from "../../models/gpt2/model-center.ts";
import { modelCenterEncoder } from "../../models/bert/model-center.ts";
import type { ModelCenterType } from "./families.ts";
import type { ModelCenterModel } from "../../models/formats/model-center.ts";
import { modelCenterT5 } from "../../models/t5/model-center.ts";

export {
  fromModelCenterConfig,
  isModelCenterConfig,
  toModelCenterConfig,
} from "./config.ts";
export type { ModelCenterType } from "./families.ts";
export type { ModelCenterModel, ModelCenterTensor } from "../../models/formats/model-center.ts";

type Fields = Readonly<Record<string, unknown>>;

const builders: Readonly<Record<ModelCenterType, (config: Fields) => ModelCenterModel>> = {
  bert: (config) => encoder("bert", config),
  roberta: (config) => encoder("roberta", config),
  gpt2: (config) => modelCenterGpt2(gpt2Config(configOfFile(config))),
  gptj: (config) => modelCenterGptJ(gptJConfig(configOfFile(config))),
  opt: (config) => modelCenterOpt(optConfig(configOfFile(config))),
  llama: (config) => {
    const { attention_bias = false, mlp_bias = false, ...rest } = llamaConfig(configOfFile(config));
    return modelCenterLlama({ attention_bias, mlp_bias, ...rest });
  },
  t5: (config) => modelCenterT5(t5Config(configOfFile(config))),
};

/**
 * How ModelCenter names the model that a Hugging Face config.json describes.
 * @throws {TroupeError} `MODEL_CONFIG` for another family, and for what ModelCenter's model of it does not have
 */
export function modelCenterModel(config: Fields): ModelCenterModel {
  const type = modelCenterType(config);
  toModelCenterConfig(type, config as Parameters<typeof toModelCenterConfig>[1]); // throws what it does not have
  return builders[type](config);
}

/** @throws {TroupeError} `MODEL_CONFIG` for a family that ModelCenter and this library do not have both */
export function modelCenterType({ model_type: type }: Fields): ModelCenterType {
  if (typeof type === "string" && Object.hasOwn(builders, type)) return type as ModelCenterType;
  throw new TroupeError(
    "MODEL_CONFIG",
    {
      where: "model-center",
      expected: `model_type to be one of ${Object.keys(builders).join(", ")}`,
      got: JSON.stringify(type) ?? "none",
      hint: "give the model's Hugging Face config.json",
    },
    { fields: { field: "model_type", got: type } },
  );
}

/** The family that a model of ModelCenter's is of, by its tensors' names, and by its config.json where two have the same. */
export function modelCenterTypeOf(names: readonly string[], config: Fields): ModelCenterType {
  const has = (part: string) => names.some((name) => name.includes(part));
  if (has("position_bias_enc.")) return "t5";
  if (!has("encoder.layers.")) return "opt";
  if (has("token_type_embedding.")) return "pad_token_id" in config ? "roberta" : "bert";
  if (has("position_embedding.")) return "gpt2";
  return has(".w_in.w_0.") ? "llama" : "gptj";
}

function encoder(type: "bert" | "roberta", config: Fields): ModelCenterModel {
  const { num_hidden_layers = 12 } = config;
  const [, head = ""] = /For(\w+)$/.exec(architectureOf(config)) ?? [];
  return modelCenterEncoder(type, { num_hidden_layers: Number(num_hidden_layers) }, head);
}
