import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type JsonObject, pytorchMetadata, writeSafetensors } from "../../checkpoint/index.ts";
import type { ConvertSource } from "../convert-source.ts";
import type { LazyTensor } from "../lazy-tensor.ts";
import { fromModelCenterConfig, isModelCenterConfig, toModelCenter } from "./config.ts";
import { fromModelCenterNames, toModelCenterNames } from "./names.ts";

/** Weights in a ModelCenter folder: its own file, or as written here, for `torch.save(load_file(…))`. */
export const modelCenterFiles = ["pytorch_model.safetensors", "pytorch_model.pt"] as const;

/**
 * Reads a ModelCenter model by Hugging Face's names and fields.
 * @param config - ModelCenter's config.json, or Hugging Face's
 * @throws {TroupeError} `MODEL_CONFIG`, `CONVERT` for settings and tensors that Hugging Face's model lacks
 */
export async function readModelCenter(
  tensors: ReadonlyMap<string, LazyTensor>,
  config: JsonObject,
): Promise<Pick<ConvertSource, "kind" | "config" | "tensors">> {
  const ours = isModelCenterConfig(config)
    ? ((await fromModelCenterConfig([...tensors.keys()], config)) as JsonObject)
    : config;
  const { model } = await toModelCenter(ours);
  return { kind: "model-center", config: ours, tensors: fromModelCenterNames(tensors, model) };
}

/**
 * Writes a model as a ModelCenter folder, with weights as safetensors.
 * @param path - an empty folder; the caller makes it durable
 */
export async function writeModelCenter(
  path: string,
  { tensors }: Pick<ConvertSource, "tensors">,
  config: JsonObject,
): Promise<void> {
  const { config: own, model } = await toModelCenter(config);
  const renamed = toModelCenterNames(tensors, model);
  await writeSafetensors(
    join(path, modelCenterFiles[0]),
    [...renamed].map(([name, tensor]) => ({ name, ...tensor })),
    pytorchMetadata,
  );
  await writeFile(join(path, "config.json"), `${JSON.stringify(own, null, 2)}\n`, { flush: true });
}
