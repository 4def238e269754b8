import { join } from "node:path";
import type { ActivationName, Module } from "../../compute/nn/index.ts";
import { noGrad } from "../../compute/tensor/index.ts";
import { fileErrors } from "../../errors/index.ts";
import { LinearPattern, maxFileBytes, readBoundedTextSync } from "../../errors/untrusted/index.ts";
import {
  adapterConfigName,
  adapterWeightsName,
  HuggingFaceFolder,
  type JsonObject,
  parseJsonObject,
  saveAdapterFolder,
} from "../checkpoint/index.ts";
import { copyWeights, matchState, tensorBytes, type WeightMatch, weightBytes } from "../models/index.ts";
import { adapter } from "./adapter.ts";
import { bitFit } from "./bit-fit.ts";
import { type Delta, deltaOf, deltaTarget, tunedState } from "./delta.ts";
import { ia3 } from "./ia3.ts";
import { lora } from "./lora.ts";
import { ownName, peftName } from "./peft-names.ts";
import { prefix } from "./prefix.ts";
import type { PromptEncoderOptions } from "./prompt-encoder.ts";
import { softPrompt } from "./soft-prompt.ts";

/** Fields of peft's LoRA config that would change the result, with the values that are supported. */
const unsupported: Readonly<Record<string, readonly unknown[]>> = {
  alora_invocation_tokens: [null],
  arrow_config: [null],
  // Others also change the base's own weights.
  init_lora_weights: [true, false, "gaussian", "eva", "orthogonal"],
  layer_replication: [null],
  lora_bias: [false],
  target_parameters: [null],
  trainable_token_indices: [null],
  use_bdlora: [null, false],
  use_dora: [false],
  use_qalora: [false],
  velora_config: [null],
  monteclora_config: [null],
  kasa_config: [null],
};

/**
 * Reads the delta of a peft folder, to apply to a model of the same base; runs start from its values.
 * @param path - with `adapter_config.json` and `adapter_model.safetensors`, or `adapter_model.bin`
 * @throws {TroupeError} `DELTA_FOLDER` for a missing file or an unsupported field
 */
export function deltaFrom(path: string): Delta {
  const config = readConfig(path);
  const { peft_type: type } = config;
  if (type === "LORA") return loraFrom(path, config);
  if (type === "IA3") return ia3From(path, config);
  if (type === "BITFIT")
    return bitFit({
      modulesToSave: namesIn(path, config.modules_to_save, "modules_to_save") ?? [],
      folder: path,
    });
  if (type === "PROMPT_TUNING" || type === "P_TUNING") return promptFrom(path, config);
  if (type === "PREFIX_TUNING") return prefixFrom(path, config);
  if (type === "BOTTLENECK") return bottleneckFrom(path, config);
  throw deltaFolder(
    path,
    "peft_type LORA, IA3, PROMPT_TUNING, P_TUNING, PREFIX_TUNING, BOTTLENECK or BITFIT",
    (JSON.stringify(type) ?? "none").slice(0, 80),
  );
}

/**
 * Writes a model's trained parameters, on one device, in peft's format: names, shapes and float types are peft's. A prompt encoder
 * is saved, as in peft, as the vectors it computes, and further training trains these.
 * @throws {TroupeError} `DELTA_TARGET` for a model without a delta
 */
export async function saveDelta(path: string, model: Module): Promise<void> {
  const delta = requireDelta(model);
  const tuned = tunedState(model);
  const encoder = delta.encoder?.(model);
  const made = new Set(encoder?.parameters());
  const weights = weightBytes(model).filter(({ name }) => {
    const parameter = tuned.get(name);
    return parameter !== undefined && !made.has(parameter);
  });
  const vectors = encoder && noGrad(() => encoder.forward().to("float32").contiguous());
  try {
    await saveAdapterFolder(path, {
      config: { ...adapterConfig(model, delta), inference_mode: true },
      weights: [
        ...(vectors === undefined ? [] : [tensorBytes("prompt_embeddings", vectors)]),
        ...weights.map((weight) => ({ ...weight, name: peftName(weight.name, model) })),
      ],
    });
  } finally {
    vectors?.dispose();
  }
}

/**
 * Reads the values of a peft folder into a model, on one device, that has its delta.
 * @throws {TroupeError} `MODEL_WEIGHTS` if names or shapes differ from the delta's, before anything is copied
 */
export async function loadDelta(path: string, model: Module): Promise<void> {
  await using file = await openWeights(path);
  await copyWeights(model, matchDelta(model, file), file);
}

/** Matches the entries of a peft file with the parameters of a model's delta. @throws {TroupeError} `MODEL_WEIGHTS` */
export function matchDelta(model: Module, file: Pick<HuggingFaceFolder, "tensors">): WeightMatch[] {
  const tuned = tunedState(model);
  const own = new Map([...tuned.keys()].map((name) => [peftName(name, model), name]));
  // With bias "all" peft also writes the biases of the head that a trained one replaces: nothing reads them.
  const written = [...file.tensors].filter(([name]) => !name.includes(".original_module."));
  const entries = new Map(
    written.map(([name, entry]) => [own.get(name) ?? ownName(name), { ...entry, name }]),
  );
  const matched = matchState(model, tuned, entries);
  return matched.map((match) => ({ ...match, entry: entries.get(match.entry)?.name ?? match.entry }));
}

/** Opens the weights of a delta's folder. @throws {TroupeError} `DELTA_FOLDER` */
async function openWeights(path: string): Promise<HuggingFaceFolder> {
  return HuggingFaceFolder.open(path).catch((cause: unknown) => {
    throw deltaFolder(path, adapterWeightsName, (cause as Error).message, { cause });
  });
}

/** The `adapter_config.json` of a model's delta. */
export function adapterConfig(model: Module, delta: Delta, base: string | null = null): JsonObject {
  // A prompt encoder is written itself, without the vectors that it computes.
  const inference_mode = delta.encoder === undefined;
  return { base_model_name_or_path: base, inference_mode, ...delta.configJson(model) } as JsonObject;
}

function requireDelta(model: Module): Delta {
  const delta = deltaOf(model);
  if (delta === undefined)
    throw deltaTarget("a model with a delta", `a ${model.constructor.name} without one`);
  return delta;
}

function loraFrom(path: string, config: JsonObject): Delta {
  for (const [field, allowed] of Object.entries(unsupported)) {
    const value = config[field] ?? null;
    if (value !== null && !allowed.includes(value))
      throw deltaFolder(path, `${field} to be ${allowed.join(" or ")}`, JSON.stringify(value));
  }
  const target = targetIn(path, config.target_modules, "target_modules");
  const exclude = targetIn(path, config.exclude_modules, "exclude_modules");
  return lora({
    rank: config.r as number,
    alpha: config.lora_alpha as number,
    dropout: (config.lora_dropout ?? 0) as number,
    ...(target === undefined ? {} : { target }),
    exclude: exclude === "all-linear" ? undefined : exclude,
    layers: placesIn(path, config.layers_to_transform, "layers_to_transform"),
    layersPattern: namesIn(path, config.layers_pattern, "layers_pattern"),
    rankPattern: numbersIn(path, config.rank_pattern, "rank_pattern"),
    alphaPattern: numbersIn(path, config.alpha_pattern, "alpha_pattern"),
    rsLora: config.use_rslora === true,
    bias: (config.bias ?? "none") as "none",
    modulesToSave: namesIn(path, config.modules_to_save, "modules_to_save") ?? [],
    init: config.init_lora_weights === "gaussian" ? "gaussian" : "uniform",
    folder: path,
  });
}

function ia3From(path: string, config: JsonObject): Delta {
  const exclude = targetIn(path, config.exclude_modules, "exclude_modules");
  const feedForward = targetIn(path, config.feedforward_modules, "feedforward_modules");
  return ia3({
    target: targetIn(path, config.target_modules, "target_modules"),
    exclude: exclude === "all-linear" ? undefined : exclude,
    feedForward: feedForward === "all-linear" ? undefined : feedForward,
    modulesToSave: namesIn(path, config.modules_to_save, "modules_to_save") ?? [],
    folder: path,
  });
}

/** Whether a folder has the encoder's weights; peft itself saves only the vectors that it computed, with `inference_mode`. */
const isEncoded = ({ inference_mode: isDone }: JsonObject): boolean => isDone === false;

function promptFrom(path: string, config: JsonObject): Delta {
  const modulesToSave = namesIn(path, config.modules_to_save, "modules_to_save") ?? [];
  const numTokens = config.num_virtual_tokens as number;
  const encoder: PromptEncoderOptions = {
    kind: (config.encoder_reparameterization_type ?? "MLP") as "MLP",
    width: (config.encoder_hidden_size ?? undefined) as number | undefined,
    numLayers: (config.encoder_num_layers ?? 2) as number,
    dropout: (config.encoder_dropout ?? 0) as number,
  };
  const isMade = config.peft_type === "P_TUNING" && isEncoded(config);
  return softPrompt({ numTokens, modulesToSave, folder: path, ...(isMade && { encoder }) });
}

function prefixFrom(path: string, config: JsonObject): Delta {
  const isMade = config.prefix_projection === true && isEncoded(config);
  return prefix({
    numTokens: config.num_virtual_tokens as number,
    projection: isMade ? ((config.encoder_hidden_size ?? config.token_dim) as number) : null,
    numLayers: (config.num_layers ?? undefined) as number | undefined,
    folder: path,
  });
}

function bottleneckFrom(path: string, config: JsonObject): Delta {
  const target = targetIn(path, config.target_modules, "target_modules");
  return adapter({
    width: config.bottleneck_dim as number,
    activation: config.non_linearity as ActivationName,
    ...(target === undefined ? {} : { target }),
    modulesToSave: namesIn(path, config.modules_to_save, "modules_to_save") ?? [],
    folder: path,
  });
}

/** A text is a pattern of complete names, in Python's syntax. */
function targetIn(
  path: string,
  value: unknown,
  field: string,
): readonly string[] | RegExp | "all-linear" | undefined {
  if (value === null || value === undefined) return undefined;
  if (value === "all-linear") return value;
  if (typeof value !== "string") return namesIn(path, value, field);
  checkPattern(path, value, field);
  return new RegExp(value, "u");
}

/** An untrusted pattern must match in linear time. */
function checkPattern(path: string, pattern: string, field: string): void {
  try {
    new LinearPattern(pattern);
  } catch (cause) {
    throw deltaFolder(
      path,
      `a pattern as ${field} that can be matched in linear time`,
      `${JSON.stringify(pattern.slice(0, 80))}: ${(cause as Error).message}`,
      { cause },
    );
  }
}

function namesIn(path: string, value: unknown, field: string): readonly string[] | undefined {
  if (value === null || value === undefined) return undefined;
  if (typeof value === "string") return [value];
  if (isListOf(value, "string")) return value as readonly string[];
  throw deltaFolder(path, `names in ${field}`, JSON.stringify(value).slice(0, 80));
}

function placesIn(path: string, value: unknown, field: string): readonly number[] | undefined {
  if (value === null || value === undefined) return undefined;
  if (typeof value === "number") return [value];
  if (isListOf(value, "number")) return value as readonly number[];
  throw deltaFolder(path, `indices of layers in ${field}`, JSON.stringify(value).slice(0, 80));
}

/** Reads numbers by patterns of modules' names. */
function numbersIn(path: string, value: unknown, field: string): Readonly<Record<string, number>> {
  const numbers = value ?? {};
  if (typeof numbers !== "object" || !isListOf(Object.values(numbers), "number"))
    throw deltaFolder(path, `numbers by patterns in ${field}`, JSON.stringify(value).slice(0, 80));
  for (const pattern of Object.keys(numbers)) checkPattern(path, pattern, field);
  return numbers as Readonly<Record<string, number>>;
}

function isListOf(value: unknown, kind: "string" | "number"): boolean {
  return Array.isArray(value) && value.every((each) => typeof each === kind);
}

function readConfig(path: string): JsonObject {
  const file = join(path, adapterConfigName);
  try {
    return parseJsonObject(readBoundedTextSync(file, maxFileBytes.config), file);
  } catch (cause) {
    throw deltaFolder(path, adapterConfigName, (cause as Error).message, { cause });
  }
}

const deltaFolder = fileErrors("DELTA_FOLDER", "delta");
