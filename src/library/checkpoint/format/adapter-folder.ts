import { join } from "node:path";
import { makeDirectoryDurably, replaceDurably } from "../storage/durable-file.ts";
import { appendSafetensors, type TensorSource } from "./safetensors-writer.ts";
import type { JsonObject } from "./strict-json.ts";

/** The file of a folder as peft writes it that says what the delta is. */
export const adapterConfigName = "adapter_config.json";

/** What the names of the files with its values begin with. */
export const adapterWeightsStem = "adapter_model";

/** The file of its values. */
export const adapterWeightsName = `${adapterWeightsStem}.safetensors`;

/** The same of releases before safetensors. */
export const adapterTorchName = `${adapterWeightsStem}.bin`;

/**
 * Writes a folder that peft reads: `adapter_model.safetensors`, then `adapter_config.json`, each replaced whole and synchronised.
 * Other files stay.
 * @throws {TroupeError} `SAFETENSORS_TENSOR` for a source that gives another number of bytes than its shape says; what a source
 *   or the file system throws
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
