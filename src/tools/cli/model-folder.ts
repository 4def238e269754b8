import { existsSync } from "node:fs";
import { join } from "node:path";
import { dematerialize } from "../../compute/nn/index.ts";
import {
  adapterConfigName,
  HuggingFaceFolder,
  newestFirst,
  openCheckpoint,
  ownerOf,
  placeOf,
} from "../../library/checkpoint/index.ts";
import type { Awaitable } from "../../library/data/index.ts";
import { loadTuned } from "../../library/deltas/index.ts";
import * as models from "../../library/models/index.ts";
import { baseOf } from "./adapter-base.ts";
import { usage } from "./flags.ts";

/** Tasks that can write text, for a folder that names no architecture. */
const writing = ["causal_lm", "seq2seq_lm"] as const;

/** A model that writes text, with its weights. */
export interface WritingModel {
  readonly model: models.GenerativeModel;
  readonly task: (typeof writing)[number];
  /** The parsed config.json and generation_config.json. */
  readonly config: Readonly<Record<string, unknown>>;
  readonly generationConfig: Readonly<Record<string, unknown>>;
  /** The folder of the model, or of an adapter's base. */
  readonly base: string;
}

/**
 * Loads a model that writes text while `use` runs.
 * @param given - Hugging Face folder, or an adapter's; or a run's, for its newest complete checkpoint, or with a name one of its states
 * @param base - base of an adapter, instead of the one that its adapter_config.json names
 * @throws {TroupeError} `USAGE` if it does not write text, or is no adapter but has a base; errors of `openCheckpoint` for a run
 */
export async function withWritingModel<T>(
  given: string,
  base: string | undefined,
  use: (opened: WritingModel) => Awaitable<T>,
): Promise<T> {
  const path = await modelFolderAt(given);
  const found = baseOf(path, base);
  const place = found ?? path;
  await using folder = await HuggingFaceFolder.open(place);
  const { config, generationConfig = {} } = folder;
  const task = models.taskOf(config) ?? writing.find((each) => models.hasModel(each, config));
  if (task !== "causal_lm" && task !== "seq2seq_lm")
    throw usage(
      "a folder of a causal language model or an encoder-decoder",
      task ?? `${config.model_type ?? "no model_type"} in its config.json`,
      "the command writes text",
    );
  const model = models.autoModel(task, models.configOfFile(config));
  try {
    await loadTuned(model, folder, found && path);
    return await use({
      model: model as unknown as models.GenerativeModel,
      ...{ task, config, generationConfig, base: place },
    });
  } finally {
    dematerialize(model);
  }
}

/** Finds a run's newest complete checkpoint, or its state with a name; another folder is the model's own. */
async function modelFolderAt(path: string): Promise<string> {
  const isModel = ["config.json", adapterConfigName].some((name) => existsSync(join(path, name)));
  if (isModel || path.includes("://")) return path;
  const { storage, name } = await placeOf(path);
  const isOfRun =
    name !== undefined || (await ownerOf(storage)) !== undefined || (await newestFirst(storage)).length > 0;
  if (!isOfRun) return path;
  await using checkpoint = await openCheckpoint(path);
  return checkpoint.path;
}
