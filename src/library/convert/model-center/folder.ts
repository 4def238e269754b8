import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type JsonObject, pytorchMetadata, writeSafetensors } from "../../checkpoint/index.ts";
import {
  fromModelCenterConfig,
  isModelCenterConfig,
  modelCenterModel,
  modelCenterType,
  modelCenterTypeOf,
  toModelCenterConfig,
} from "../../models/index.ts";
import type { ConvertSource } from "../convert-source.ts";
import type { LazyTensor } from "../lazy-tensor.ts";
import { fromModelCenter, toModelCenter } from "./names.ts";

/** Files of weights in a folder of ModelCenter's: its own, and what is written here, for `torch.save(load_file(…))`. */
export const modelCenterFiles = ["pytorch_model.safetensors", "pytorch_model.pt"] as const;

/**
 * A model of ModelCenter's by Hugging Face's names and fields.
 * @param config - ModelCenter's config.json, or Hugging Face's
 * @throws {TroupeError} `MODEL_CONFIG`, `CONVERT` for what Hugging Face's model does not have
 */
export function readModelCenter(
  tensors: ReadonlyMap<string, LazyTensor>,
  config: JsonObject,
): Pick<ConvertSource, "kind" | "config" | "tensors"> {
  const ours = isModelCenterConfig(config)
    ? (fromModelCenterConfig(modelCenterTypeOf([...tensors.keys()], config), config) as JsonObject)
    : config;
  return { kind: "model-center", config: ours, tensors: fromModelCenter(tensors, modelCenterModel(ours)) };
}

/**
 * Writes a model as ModelCenter's folders have it, its weights as safetensors.
 * @param path - an empty folder, the caller's to make durable
 */
export async function writeModelCenter(
  path: string,
  { tensors }: Pick<ConvertSource, "tensors">,
  config: JsonObject,
): Promise<void> {
  const renamed = toModelCenter(tensors, modelCenterModel(config));
  const own = toModelCenterConfig(modelCenterType(config), config);
  await writeSafetensors(
    join(path, modelCenterFiles[0]),
    [...renamed].map(([name, tensor]) => ({ name, ...tensor })),
    pytorchMetadata,
  );
  await writeFile(join(path, "config.json"), `${JSON.stringify(own, null, 2)}\n`, { flush: true });
}
