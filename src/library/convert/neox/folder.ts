import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { fileErrors } from "../../../errors/index.ts";
import { type JsonObject, TorchFile } from "../../checkpoint/index.ts";
import type { NeoXModel } from "../../models/index.ts";
import { findConfig, latestWord } from "../beside-config.ts";
import type { ConvertSource } from "../convert-source.ts";
import { familiesWith, formOf } from "../form-of.ts";
import type { LazyTensor } from "../lazy-tensor.ts";

/** A file of one model-parallel rank: one layer of the pipeline, or, without a pipeline, all layers. */
const rankFile = /^(?:layer_(?<layer>\d+)-model_(?<rank>\d+)-|mp_rank_(?<all>\d+)_)model_states\.pt$/;
const stepFolder = /^global_step(\d+)$/;
const latestName = "latest";

/** Whether a folder with these entries is GPT-NeoX's, of a run or of one step. */
export function looksLikeNeoX(entries: readonly string[]): boolean {
  const isRun = entries.includes(latestName) && entries.some((entry) => stepFolder.test(entry));
  return isRun || entries.some((entry) => rankFile.test(entry));
}

/**
 * Opens a checkpoint of GPT-NeoX with one model-parallel rank: a file for each layer of the pipeline, or one for all.
 * @param path - the folder of a run or of a step; it or one above has a Hugging Face `config.json`
 * @throws {TroupeError} `CONVERT` for files that are missing or do not fit together, and for several model-parallel ranks: their
 *   biases would have to be added, which is more than a change of format
 */
export async function openNeoX(path: string, given: JsonObject | undefined): Promise<ConvertSource> {
  const { folder, step } = await stepOf(path);
  const config = given ?? (await findConfig("gpt-neox", [folder, path, join(folder, "..")]));
  const entries = (await readdir(folder)).flatMap((name) => {
    const { layer, rank, all } = rankFile.exec(name)?.groups ?? {};
    return rank === undefined && all === undefined ? [] : [{ name, layer, rank: Number(rank ?? all) }];
  });
  const ofLayers = entries.filter(({ layer }) => layer !== undefined);
  // Beside files of layers there are those of the optimizer's ranks, without weights.
  const holding = ofLayers.length > 0 ? ofLayers : entries;
  if (holding.some(({ rank }) => rank > 0))
    throw refusal(folder, "one model-parallel rank", `${Math.max(...holding.map(({ rank }) => rank)) + 1}`, {
      hint: "merge them with GPT-NeoX's own tools first",
    });
  await using opening = new AsyncDisposableStack();
  const found = new Map<string, LazyTensor>();
  for (const { name: file, layer } of holding) {
    const opened = opening.use(await TorchFile.open(join(folder, file)));
    for (const { name, dtype, shape } of opened.tensors.values()) {
      const own =
        layer === undefined ? name.replace(/^module\.sequential\./, "") : `${Number(layer)}.${name}`;
      if (layer === undefined && own === name) continue; // optimizer state
      found.set(own, { dtype, shape, read: () => opened.read(name) });
    }
  }
  const [family] = familiesWith("neox");
  const form = await formOf("neox", "gpt-neox", { model_type: family?.modelType });
  const tensors = renamed(found, form(config), folder);
  const files = opening.move();
  return {
    kind: "gpt-neox",
    path,
    config,
    step,
    tensors,
    optimizer: new Map(),
    close: () => files.disposeAsync(),
  };
}

function renamed(
  found: ReadonlyMap<string, LazyTensor>,
  { rows, ignored }: NeoXModel,
  folder: string,
): Map<string, LazyTensor> {
  const names = new Map(rows.map(({ there, here }) => [there, here]));
  const missing = [...names.keys()].filter((name) => !found.has(name));
  const unknown = [...found.keys()].filter((name) => !names.has(name) && !ignored.test(name));
  const hint = "does config.json describe this model?";
  if (missing.length > 0) throw refusal(folder, `${missing[0]} of layer.name`, "none", { hint });
  if (unknown.length > 0) throw refusal(folder, "the model's tensors alone", String(unknown[0]), { hint });
  return new Map([...names].map(([theirs, ours]) => [ours, found.get(theirs) as LazyTensor]));
}

async function stepOf(path: string): Promise<{ folder: string; step: number }> {
  const latest = await latestWord("gpt-neox", join(path, latestName));
  // An untrusted name must not lead out of the run's folder.
  if (latest !== undefined && !stepFolder.test(latest))
    throw refusal(join(path, latestName), "global_step and a number", JSON.stringify(latest.slice(0, 40)), {
      hint: "restore that file",
    });
  const folder = latest === undefined ? path : join(path, latest);
  return { folder, step: Number(stepFolder.exec(folder.split("/").at(-1) ?? "")?.[1] ?? 0) };
}

const refusal = fileErrors("CONVERT", "gpt-neox");
