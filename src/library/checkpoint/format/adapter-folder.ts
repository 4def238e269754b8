import { join } from "node:path";
import { makeDirectoryDurably, replaceDurably } from "../storage/durable-file.ts";
import { appendSafetensors, type TensorSource } from "./safetensors-writer.ts";
import type { JsonObject } from "./strict-json.ts";

/** The file of a peft folder that describes the delta. */
export const adapterConfigName = "adapter_config.json";

/** Prefix of the names of the files with its tensors. */
export const adapterWeightsStem = "adapter_model";

/** The file with its tensors. */
export const adapterWeightsName = `${adapterWeightsStem}.safetensors`;

/** That file in releases before safetensors. */
export const adapterTorchName = `${adapterWeightsStem}.bin`;

/**
 * Writes a folder for peft: `adapter_model.safetensors`, then `adapter_config.json`, each replaced atomically and
 * synchronised. Other files stay.
 * @throws {TroupeError} `SAFETENSORS_TENSOR` for a source whose bytes do not match its shape; errors of a source or the
 * file system
 */
export async function saveAdapterFolder(
  path: string,
  delta: { readonly config: JsonObject; readonly weights: readonly TensorSource[] },
): Promise<void> {
  await makeDirectoryDurably(path);
  await replaceDurably(join(path, adapterWeightsName), (file) => appendSafetensors(file, delta.weights));
  await replaceDurably(join(path, adapterConfigName), (file) =>
    file.append(Buffer.from(`${JSON.stringify(delta.config, null, 2)}\n`)),
  );
}
