import { existsSync, readdirSync } from "node:fs";
import { readdir, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { numelOf } from "../../compute/tensor/index.ts";
import { fileFailure, isRecord, TroupeError, whichPathWasMeant } from "../../errors/index.ts";
import { isThere, maxFileBytes, readBoundedText } from "../../errors/untrusted/index.ts";
import { adapterConfigName, adapterTorchName, adapterWeightsName } from "./format/adapter-folder.ts";
import { type Companions, readCompanions } from "./format/companions.ts";
import { isFileName } from "./format/manifest.ts";
import { generationConfigName, type ModelTexts } from "./format/model-texts.ts";
import { defaultMaxFileBytes, indexOf, numberedFiles } from "./format/numbered-files.ts";
import { SafetensorsFile } from "./format/safetensors-file.ts";
import type { TensorFacts } from "./format/safetensors-header.ts";
import { appendSafetensors, type TensorSource } from "./format/safetensors-writer.ts";
import { stepOf } from "./format/step-folder.ts";
import { type JsonObject, type JsonValue, parseJsonObject } from "./format/strict-json.ts";
import { noTensor, type TensorFile, type TensorPart } from "./format/tensor-file.ts";
import { TorchFile } from "./format/torch-file.ts";
import type { Bytes } from "./storage/bytes.ts";
import { makeDirectoryDurably, replaceDurably } from "./storage/durable-file.ts";

const configName = "config.json";
const weightsName = "model.safetensors";
const indexName = "model.safetensors.index.json";
/** Weights of releases before safetensors, read where there are no others. */
const torchWeightsName = "pytorch_model.bin";
const torchIndexName = "pytorch_model.bin.index.json";
const weightFile = /^model(-\d{5}-of-\d{5})?\.safetensors(\.index\.json)?$/;

/**
 * A model folder in Hugging Face's layout, weights in one file or several; or a delta's folder in peft's. Owns open
 * files until `close`.
 */
export class HuggingFaceFolder {
  readonly path: string;
  /** The content of `config.json`. */
  readonly config: JsonObject;
  /** The content of `generation_config.json`, where there is one. */
  readonly generationConfig: JsonObject | undefined;
  readonly #fileOf: ReadonlyMap<string, TensorFile>;
  readonly #files: AsyncDisposableStack;

  private constructor(
    path: string,
    { config, generationConfig }: ModelTexts,
    fileOf: ReadonlyMap<string, TensorFile>,
    files: AsyncDisposableStack,
  ) {
    this.path = path;
    this.config = config;
    this.generationConfig = generationConfig;
    this.#fileOf = fileOf;
    this.#files = files;
  }

  /**
   * Opens a folder. It must have `config.json` with `model.safetensors`, or with `model.safetensors.index.json` and the
   * files that it names; else the files of older releases, `pytorch_model.bin` or those that its index names; or, for a
   * delta, `adapter_config.json` with `adapter_model.safetensors` or `adapter_model.bin`.
   * @throws {TroupeError} `HUGGING_FACE_FOLDER` when files are missing or contradict each other; errors of
   * `SafetensorsFile.open` and `TorchFile.open`
   */
  static async open(path: string): Promise<HuggingFaceFolder> {
    if (await isThere(join(path, adapterConfigName))) return HuggingFaceFolder.#openAdapter(path);
    const texts = await configsOf(path);
    await using opening = new AsyncDisposableStack();
    const fileOf = new Map<string, TensorFile>();
    const form = formOf(path) ?? safetensors;
    const single = join(path, form.weights);
    if (await isThere(single)) {
      const file = opening.use(await form.open(single));
      for (const name of file.tensors.keys()) fileOf.set(name, file);
    } else {
      const index = join(path, form.index);
      for (const [fileName, names] of filesOf(await readJson(index, maxFileBytes.index), index)) {
        const file = opening.use(await openNamed(join(path, fileName), form.open));
        for (const name of names) fileOf.set(file.entry(name).name, file);
      }
    }
    checkSizes(join(path, configName), texts.config, fileOf);
    return new HuggingFaceFolder(path, texts, fileOf, opening.move());
  }

  static async #openAdapter(path: string): Promise<HuggingFaceFolder> {
    const config = await readJson(join(path, adapterConfigName));
    await using opening = new AsyncDisposableStack();
    const pickle = join(path, adapterTorchName);
    const isOld = !(await isThere(join(path, adapterWeightsName))) && (await isThere(pickle));
    const file = opening.use(
      isOld
        ? await TorchFile.open(pickle)
        : await openNamed(join(path, adapterWeightsName), SafetensorsFile.open),
    );
    const fileOf = new Map([...file.tensors.keys()].map((name) => [name, file]));
    return new HuggingFaceFolder(path, { config }, fileOf, opening.move());
  }

  /** Reads the files that other programs need besides the weights. @throws {TroupeError} `HUGGING_FACE_FOLDER` */
  companions(): Promise<Companions> {
    return readCompanions(this.path);
  }

  /** Dtype and shape of each tensor, by name. */
  get tensors(): ReadonlyMap<string, TensorFacts> {
    return new Map(this.names.map((name) => [name, this.entry(name)]));
  }

  /** The names of all tensors. */
  get names(): string[] {
    return [...this.#fileOf.keys()];
  }

  /** Whether the folder has the tensor `name`. */
  has(name: string): boolean {
    return this.#fileOf.has(name);
  }

  /** Returns a tensor's dtype and shape. @throws {TroupeError} `SAFETENSORS_TENSOR` for an unknown name */
  entry(name: string): TensorFacts {
    return this.#file(name).entry(name);
  }

  /** Reads a tensor's bytes, as `SafetensorsFile.read` does. */
  read(name: string, into?: Uint8Array): Promise<Uint8Array> {
    return this.#file(name).read(name, into);
  }

  /** Reads part of a tensor's bytes, as `SafetensorsFile.readRange` does. */
  readRange<T extends Bytes>(name: string, offsetBytes: number, into: T): Promise<T> {
    return this.#file(name).readRange(name, offsetBytes, into);
  }

  /** Reads parts of a tensor's bytes, as `SafetensorsFile.readStretches` does. */
  async readStretches(name: string, stretches: Float64Array, into: Bytes): Promise<void> {
    await this.#file(name).readStretches(name, stretches, into);
  }

  /** Reads parts of several tensors, as `SafetensorsFile.readParts` does. */
  async readParts(parts: readonly TensorPart[], into: Bytes): Promise<void> {
    const ofFiles = Map.groupBy(parts, ({ name }) => this.#file(name));
    for (const [file, ofFile] of ofFiles) await file.readParts(ofFile, into);
  }

  async close(): Promise<void> {
    await this.#files.disposeAsync();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  #file(name: string): TensorFile {
    const file = this.#fileOf.get(name);
    if (file !== undefined) return file;
    throw noTensor("hugging face", this.path, name, this.names);
  }
}

/** Options of {@link saveHuggingFaceFolder}. */
export interface SaveFolderOptions {
  /** Largest file of weights, in bytes, except where a single tensor is larger. Default: 5 GiB. */
  readonly maxFileBytes?: number;
}

/**
 * Writes a model folder for `transformers`: the weights in one file or, beyond a size, in numbered ones with an index;
 * then `config.json` and, where given, `generation_config.json` and the companions, each replaced atomically and
 * synchronised. Weights left from an earlier save are removed; other files stay.
 * @throws {TroupeError} `SAFETENSORS_TENSOR` for a source whose bytes do not match its shape; errors of a source or the
 * file system
 */
export async function saveHuggingFaceFolder(
  path: string,
  model: ModelTexts & { readonly weights: readonly TensorSource[] },
  { maxFileBytes = defaultMaxFileBytes }: SaveFolderOptions = {},
): Promise<void> {
  await makeDirectoryDurably(path);
  const cut = numberedFiles("model", model.weights, maxFileBytes);
  const files = cut.length > 0 ? cut : [{ name: weightsName, tensors: [] }];
  for (const { name, tensors } of files)
    await replaceDurably(join(path, name), (file) => appendSafetensors(file, tensors));
  if (files.length > 1) await replaceText(join(path, indexName), indexOf(files));
  // Readers would take weights of an earlier save under other names for this model's.
  const names = new Set([...files.map(({ name }) => name), ...(files.length > 1 ? [indexName] : [])]);
  for (const entry of await readdir(path)) {
    if (weightFile.test(entry) && !names.has(entry)) await rm(join(path, entry));
  }
  const { config, generationConfig, companions = {} } = model;
  await replaceText(join(path, configName), textOf(config));
  if (generationConfig !== undefined)
    await replaceText(join(path, generationConfigName), textOf(generationConfig));
  for (const [name, bytes] of Object.entries(companions))
    await replaceDurably(join(path, name), (file) => file.append(bytes));
}

const textOf = (value: JsonObject): string => `${JSON.stringify(value, null, 2)}\n`;

function replaceText(path: string, text: string): Promise<unknown> {
  return replaceDurably(path, (file) => file.append(Buffer.from(text)));
}

/**
 * The tensors of each file that an index names.
 * @param path - of the index, for errors
 * @throws {TroupeError} `HUGGING_FACE_FOLDER`
 */
export function filesOf({ weight_map: weightMap }: JsonObject, path: string): Map<string, string[]> {
  if (typeof weightMap !== "object" || weightMap === null) throw contradiction(path, "a weight_map", "none");
  const namesOf = new Map<string, string[]>();
  for (const [name, fileName] of Object.entries(weightMap)) {
    // A name from a foreign file must not lead out of the folder.
    if (typeof fileName !== "string" || !isFileName(fileName))
      throw contradiction(
        path,
        `a plain file name for tensor ${JSON.stringify(name)}`,
        JSON.stringify(fileName),
      );
    const names = namesOf.get(fileName);
    if (names === undefined) namesOf.set(fileName, [name]);
    else names.push(name);
  }
  return namesOf;
}

/** A format of weights in a folder. */
interface WeightForm {
  readonly weights: string;
  readonly index: string;
  readonly open: (path: string) => Promise<TensorFile>;
}

const safetensors: WeightForm = { weights: weightsName, index: indexName, open: SafetensorsFile.open };
const torch: WeightForm = { weights: torchWeightsName, index: torchIndexName, open: TorchFile.open };

/** Reads the texts of a model's folder, with or without weights. @throws {TroupeError} `HUGGING_FACE_FOLDER` */
export async function readTexts(path: string): Promise<ModelTexts> {
  return { ...(await configsOf(path)), companions: await readCompanions(path) };
}

async function configsOf(path: string): Promise<ModelTexts> {
  const config = await readJson(join(path, configName));
  const generation = join(path, generationConfigName);
  return { config, generationConfig: (await isThere(generation)) ? await readJson(generation) : undefined };
}

/** The formats of weights; if a folder has both, the first is read. */
const forms = [safetensors, torch];

/** Whether a folder has a model's weights in a format that {@link HuggingFaceFolder.open} reads. */
export function hasWeights(path: string): boolean {
  return formOf(path) !== undefined;
}

function formOf(path: string): WeightForm | undefined {
  return forms.find(({ weights, index }) => [weights, index].some((name) => existsSync(join(path, name))));
}

async function openNamed(path: string, open: WeightForm["open"]): Promise<TensorFile> {
  if (!(await isThere(path))) throw contradiction(path, "the file that the index names", "none");
  return open(path);
}

/** Fields for numbers of layers and for widths: each layer has a weight of its own, and each width is a dim of some weight. */
const [layerFields, widthFields] = [
  /^(n_layers?|num_layers|num_hidden_layers|num_decoder_layers|encoder_layers|decoder_layers)$/,
  /^(vocab_size|hidden_size|n_embd|d_model|intermediate_size|n_inner|d_ff|ffn_dim|encoder_ffn_dim|decoder_ffn_dim)$/,
];
/** Models up to this size are not compared here: declaring them is cheap, and their weights are compared when they are read. */
const [FREE_LAYERS, FREE_WIDTH] = [256, 1 << 20];

/**
 * Compares the model's size in config.json with the weights, before any memory is allocated for it.
 * @throws {TroupeError} `HUGGING_FACE_FOLDER` for more layers than weights, or a width greater than the largest weight
 */
function checkSizes(path: string, config: JsonObject, fileOf: ReadonlyMap<string, TensorFile>): void {
  let mostElements = 0;
  for (const [name, file] of fileOf) mostElements = Math.max(mostElements, numelOf(file.entry(name).shape));
  const [mostLayers, widest] = [Math.max(FREE_LAYERS, fileOf.size), Math.max(FREE_WIDTH, mostElements)];
  for (const [name, value] of fieldsOf(config)) {
    if (typeof value !== "number") continue;
    if (layerFields.test(name) && value > mostLayers)
      throw contradiction(path, `${name} of no more than its ${fileOf.size} weights`, `${value}`);
    if (widthFields.test(name) && value > widest)
      throw contradiction(
        path,
        `${name} of no more than the ${mostElements} numbers of its largest weight`,
        `${value}`,
      );
  }
}

/** The fields of a config.json and of the configs within it. */
function fieldsOf(config: JsonObject): [name: string, value: JsonValue][] {
  return Object.entries(config).flatMap(([name, value]): [string, JsonValue][] =>
    name.endsWith("_config") && isRecord(value) ? fieldsOf(value as JsonObject) : [[name, value]],
  );
}

async function readJson(path: string, maxBytes: number = maxFileBytes.config): Promise<JsonObject> {
  const text = await readBoundedText(path, maxBytes).catch((cause: unknown) => {
    throw contradiction(path, "a readable file", fileFailure(cause), cause);
  });
  return parseJsonObject(text, path);
}

/** Suggests a step's folder: a run's folder has a model folder for each saved step. */
function whichStepWasMeant(folder: string): string | undefined {
  try {
    const last = readdirSync(folder)
      .filter((name) => stepOf(name) !== undefined)
      .toSorted((a, b) => (stepOf(a) ?? 0) - (stepOf(b) ?? 0))
      .at(-1);
    return last === undefined ? undefined : `did you mean ${join(folder, last)}, of the run there?`;
  } catch {
    return undefined; // no folder, or not ours to read
  }
}

function contradiction(path: string, expected: string, got: string, cause?: unknown): TroupeError {
  return new TroupeError("HUGGING_FACE_FOLDER", {
    where: "hugging face",
    expected: `${expected} at ${path}`,
    got,
    hint:
      whichPathWasMeant(path) ??
      whichStepWasMeant(dirname(path)) ??
      "give a folder with config.json and model.safetensors, or with model.safetensors.index.json and the files it names",
    fields: { path },
    cause,
  });
}
