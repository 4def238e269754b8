import { existsSync } from "node:fs";
import { join } from "node:path";
import { dematerialize, materializeTransient, type Parameter } from "../../compute/nn/index.ts";
import { hold, type Tensor, tensor } from "../../compute/tensor/index.ts";
import { TroupeError } from "../../errors/index.ts";
import { adapterConfigName, type Companions, type JsonObject } from "../checkpoint/index.ts";
import { type ConvertSource, type LazyTensor, openSource } from "../convert/index.ts";
import type { TokenizerSpec } from "../data/index.ts";
import { loadTuned, mergeDelta } from "../deltas/index.ts";
import {
  autoModel,
  configOfFile,
  counted,
  hasModel,
  matchWeights,
  type Task,
  type TaskModel,
  taskOf,
  weightDTypes,
} from "../models/index.ts";
import { exportError } from "./export-error.ts";
import { readFromMemory } from "./read-from-memory.ts";

/** A model to be exported, whose parameters are read one by one. */
export interface OpenedModel extends AsyncDisposable {
  readonly model: TaskModel;
  readonly task: Task;
  readonly config: JsonObject;
  readonly generationConfig: JsonObject | undefined;
  readonly companions: Companions;
  /** The tokenizer that a run trained it with; undefined if it is no checkpoint of a run, or the run had none. */
  readonly tokenizer: TokenizerSpec | undefined;
  /** Reads a parameter or buffer: float32, or its own dtype if that is no float. The caller disposes it. */
  read(name: string): Promise<Tensor>;
}

/** How a model is opened for export. */
export interface OpenModelOptions {
  /** Folder of the model that an adapter was tuned from. */
  readonly base?: string | undefined;
  /** The task, for a config.json without `architectures`. */
  readonly task?: string | undefined;
}

/**
 * Opens a model at a path: anything that `convert` reads, or an adapter with its base. Low-rank maps and factors are merged; other
 * deltas stay parts of the model.
 * @throws {TroupeError} `EXPORT` for a model without a task, or an adapter without a base; errors of reading
 */
export async function openModel(path: string, { base, task: given }: OpenModelOptions): Promise<OpenedModel> {
  const adapter = existsSync(join(path, adapterConfigName)) ? path : undefined;
  if (adapter === undefined && base !== undefined)
    throw exportError("a base with an adapter", `one with ${path}`, {
      hint: `that has no ${adapterConfigName}`,
    });
  if (adapter !== undefined && base === undefined)
    throw exportError("the folder of the model that the adapter was tuned from", "none", {
      hint: "--base names it",
    });
  const source = await openSource(base ?? path);
  try {
    const { config } = source;
    if (config === undefined)
      throw exportError(`a config.json of the model in ${path}`, "none", {
        hint: "models of a class of your own are exported by writeOnnx",
      });
    const task = taskIn(config, given);
    const model = autoModel(task, configOfFile(config));
    const release = adapter === undefined ? undefined : await loadMerged(model, source, adapter);
    const read = adapter === undefined ? streamed(model, source) : readFromMemory(model);
    const { generationConfig, companions = {} } = source;
    const close = async () => {
      release?.();
      dematerialize(model);
      await source.close();
    };
    const tokenizer = (source.state?.tokenizer ?? undefined) as TokenizerSpec | undefined;
    const files = { config, generationConfig, companions, tokenizer };
    return { model, task, ...files, read, [Symbol.asyncDispose]: close };
  } catch (error) {
    await source.close();
    throw error;
  }
}

function taskIn(config: JsonObject, given: string | undefined): Task {
  const task = given ?? taskOf(config);
  if (task !== undefined && hasModel(task as Task, config)) return task as Task;
  const known: readonly Task[] = ["image_text"];
  const only = task === undefined ? known.find((each) => hasModel(each, config)) : undefined;
  if (only !== undefined) return only;
  throw exportError(
    "a model with the head of a task",
    task ?? `architectures ${JSON.stringify(config.architectures ?? null)} of ${String(config.model_type)}`,
    { hint: "--task names one, such as causal_lm or sequence_classification" },
  );
}

/** Arrays and dtypes of weights, by their names in files. */
const formats = { ...weightDTypes, I64: counted } as const;

function tensorOf({ dtype: name }: LazyTensor, bytes: Uint8Array, { shape }: Parameter): Tensor {
  if (!Object.hasOwn(formats, name)) throw exportError(`weights of ${Object.keys(formats).join(", ")}`, name);
  const { dtype, array } = formats[name as keyof typeof formats];
  const values = new array(bytes.slice().buffer as ArrayBuffer);
  return hold(() => {
    const own = tensor(values, { dtype, shape });
    return name === "I64" ? own : own.to("float32");
  });
}

/** Reads each parameter from the file when it is asked for. */
function streamed(model: TaskModel, { tensors }: ConvertSource): OpenedModel["read"] {
  const matches = new Map(matchWeights(model, tensors).map((match) => [match.name, match]));
  materializeTransient(model, 0);
  const inMemory = readFromMemory(model);
  return async (name) => {
    const match = matches.get(name);
    if (match === undefined) return inMemory(name);
    const lazy = tensors.get(match.entry) as LazyTensor;
    return tensorOf(lazy, await lazy.read(), match.parameter);
  };
}

/** Loads a base with its delta, merged where possible. */
async function loadMerged(
  model: TaskModel,
  { tensors }: ConvertSource,
  adapter: string,
): Promise<(() => void) | undefined> {
  const weights = {
    names: [...tensors.keys()],
    entry: (name: string) => tensors.get(name) as LazyTensor,
    read: (name: string) => (tensors.get(name) as LazyTensor).read(),
  };
  await loadTuned(model, weights, adapter);
  try {
    return mergeDelta(model);
  } catch (error) {
    if (error instanceof TroupeError && error.code === "DELTA_TARGET") return undefined;
    throw error;
  }
}
