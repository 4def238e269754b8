import { existsSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { dematerialize, materialize, materializeTransient, type Parameter } from "../../compute/nn/index.ts";
import { hold, type Tensor, tensor } from "../../compute/tensor/index.ts";
import { TroupeError } from "../../errors/index.ts";
import { adapterConfigName, type Companions, type JsonObject } from "../checkpoint/index.ts";
import { type ConvertSource, type LazyTensor, openSource, writeBeside } from "../convert/index.ts";
import { applyDelta, deltaFrom, loadDelta, mergeDelta } from "../deltas/index.ts";
import * as models from "../models/index.ts";
import { exportError } from "./export-error.ts";
import { type OnnxOptions, onnxTypes, writeOnnxParts } from "./onnx/export-onnx.ts";
import { readFromMemory } from "./read-from-memory.ts";

/** Formats that a model can be exported to. */
export const exportKinds = ["onnx"] as const;

/** Options of {@link exportModel}. */
export interface ExportOptions extends OpenModelOptions {
  readonly to: (typeof exportKinds)[number];
  /** Types of weights: for ONNX any of `fp32`, `fp16` and `int8`, a file each. Default: fp32. */
  readonly types?: readonly string[] | undefined;
  /** See {@link OnnxOptions}. */
  readonly opset?: number | undefined;
  /** See {@link OnnxOptions}. */
  readonly maxFileBytes?: number | undefined;
}

/** Summary of an export. */
export interface Exported {
  readonly source: string;
  readonly target: string;
  readonly task: string;
  /** Paths in `target`. */
  readonly files: readonly string[];
}

/**
 * Exports a model for inference by other programs: to ONNX, for onnxruntime and transformers.js, in a folder with configs, tokenizer
 * and chat template, as those are laid out on Hugging Face's hub. Weights are read and written one by one.
 * @param source - anything that `convert` reads, or an adapter with its base
 * @param target - must not exist
 * @throws {TroupeError} `EXPORT`, naming the module or the option; errors of reading and writing. Then nothing is left behind
 */
export async function exportModel(source: string, target: string, options: ExportOptions): Promise<Exported> {
  await using opened = await openModel(source, options);
  const files = await writeBeside("export", target, (temporary) =>
    writeOnnxFolder(temporary, opened, options),
  );
  return { source, target, task: opened.task, files };
}

async function writeOnnxFolder(
  folder: string,
  opened: OpenedModel,
  { types = ["fp32"], opset, maxFileBytes }: ExportOptions,
): Promise<string[]> {
  const { model, task, config, generationConfig, companions } = opened;
  const place = join(folder, "onnx");
  await mkdir(place, { recursive: true });
  const written: string[] = [];
  for (const type of types.map(onnxTypeOf))
    written.push(...(await writeOnnxParts(place, model, task, opened.read, { type, opset, maxFileBytes })));
  const hasApart = written.some((path) => path.endsWith("_data"));
  const texts: Record<string, JsonObject> = {
    "config.json": hasApart
      ? { ...config, "transformers.js_config": { use_external_data_format: true } }
      : config,
    ...(generationConfig && { "generation_config.json": generationConfig }),
  };
  for (const [name, text] of Object.entries(texts))
    await writeFile(join(folder, name), `${JSON.stringify(text, null, 2)}\n`);
  for (const [name, bytes] of Object.entries(companions)) await writeFile(join(folder, name), bytes);
  return [
    ...Object.keys(texts),
    ...Object.keys(companions),
    ...written.map((path) => `onnx/${basename(path)}`),
  ];
}

function onnxTypeOf(type: string): NonNullable<OnnxOptions["type"]> {
  if (Object.hasOwn(onnxTypes, type)) return type as NonNullable<OnnxOptions["type"]>;
  throw exportError(`a type of ${Object.keys(onnxTypes).join(", ")}`, type);
}

/** A model to be exported, whose parameters are read one by one. */
export interface OpenedModel extends AsyncDisposable {
  readonly model: models.TaskModel;
  readonly task: models.Task;
  readonly config: JsonObject;
  readonly generationConfig: JsonObject | undefined;
  readonly companions: Companions;
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
async function openModel(path: string, { base, task: given }: OpenModelOptions): Promise<OpenedModel> {
  const adapter = existsSync(join(path, adapterConfigName)) ? path : undefined;
  if (adapter === undefined && base !== undefined)
    throw exportError(
      "a base with an adapter",
      `one with ${path}`,
      undefined,
      `that has no ${adapterConfigName}`,
    );
  if (adapter !== undefined && base === undefined)
    throw exportError(
      "the folder of the model that the adapter was tuned from",
      "none",
      undefined,
      "--base names it",
    );
  const source = await openSource(base ?? path);
  try {
    const { config } = source;
    if (config === undefined)
      throw exportError(
        `a config.json of the model in ${path}`,
        "none",
        undefined,
        "models of a class of your own are exported by writeOnnx",
      );
    const task = taskIn(config, given);
    const model = models.autoModel(task, models.configOfFile(config));
    const release = adapter === undefined ? undefined : await loadTuned(model, source, adapter);
    const read = adapter === undefined ? streamed(model, source) : readFromMemory(model);
    const { generationConfig, companions = {} } = source;
    const close = async () => {
      release?.();
      dematerialize(model);
      await source.close();
    };
    return { model, task, config, generationConfig, companions, read, [Symbol.asyncDispose]: close };
  } catch (error) {
    await source.close();
    throw error;
  }
}

function taskIn(config: JsonObject, given: string | undefined): models.Task {
  const task = given ?? models.taskOf(config);
  if (task !== undefined && models.hasModel(task as models.Task, config)) return task as models.Task;
  const known: readonly models.Task[] = ["image_text"];
  const only = task === undefined ? known.find((each) => models.hasModel(each, config)) : undefined;
  if (only !== undefined) return only;
  throw exportError(
    "a model with the head of a task",
    task ?? `architectures ${JSON.stringify(config.architectures ?? null)} of ${String(config.model_type)}`,
    undefined,
    "--task names one, such as causal_lm or sequence_classification",
  );
}

/** Arrays and dtypes of weights, by their names in files. */
const formats = { ...models.weightDTypes, I64: models.counted } as const;

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
function streamed(model: models.TaskModel, { tensors }: ConvertSource): OpenedModel["read"] {
  const matches = new Map(models.matchWeights(model, tensors).map((match) => [match.name, match]));
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
async function loadTuned(
  model: models.TaskModel,
  { tensors }: ConvertSource,
  adapter: string,
): Promise<(() => void) | undefined> {
  applyDelta(model, deltaFrom(adapter));
  const { matched } = models.pretrained(model, tensors);
  materialize(model, { seed: 0 });
  const weights = {
    entry: (name: string) => tensors.get(name) as LazyTensor,
    read: (name: string) => (tensors.get(name) as LazyTensor).read(),
  };
  await models.copyWeights(model, matched, weights);
  await loadDelta(adapter, model);
  try {
    return mergeDelta(model);
  } catch (error) {
    if (error instanceof TroupeError && error.code === "DELTA_TARGET") return undefined;
    throw error;
  }
}
