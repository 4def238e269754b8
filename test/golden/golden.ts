import { existsSync, readdirSync, readFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { keep, type Tensor, tensor } from "../../src/compute/tensor/index.ts";
import { HuggingFaceFolder, SafetensorsFile } from "../../src/library/checkpoint/index.ts";
import { applyDelta, deltaFrom, loadDelta, ownName } from "../../src/library/deltas/index.ts";
import {
  autoModel,
  bareName,
  copyWeights,
  hasModel,
  loadWeights,
  pretrained,
  shiftRight,
  type Task,
  type TaskModel,
  taskOf,
} from "../../src/library/models/index.ts";
import { sharedPath } from "../fixtures/shared.ts";

/** A folder of a tiny model that Hugging Face's transformers wrote, with what it computes. */
export interface GoldenFolder {
  /** The name in titles of tests. */
  readonly name: string;
  readonly path: string;
  /** Where config.json and the weights lie: the folder, or its `base` where a delta stands on that. */
  readonly base: string;
  /** The folder of a delta, as peft writes it; undefined where everything is trained. */
  readonly adapter: string | undefined;
  readonly config: Readonly<Record<string, unknown>>;
  /** The model's task; undefined if its architecture names none. */
  readonly task: Task | undefined;
  /** Why it cannot be tested; undefined where it can. */
  readonly lacks: string | undefined;
}

/** The reference values in a folder beside the model. */
export interface Golden {
  /** `input.*`, `output.*` and `grad.*`, int64 or float32. */
  readonly state: ReadonlyMap<string, Tensor>;
  readonly recipe: {
    readonly adamw: { lr: number; betas: [number, number]; eps: number; weight_decay: number };
    readonly losses: readonly number[];
    readonly losses_clip_1: readonly number[];
    readonly grad_norms: readonly number[];
  };
}

/** Where one reference state lies, for a test of something else; undefined where there is none (see `sharedPath`). */
export function goldenPath(name: string): string | undefined {
  return sharedPath(`golden/${name}`);
}

/** Families that the folders beside the repository leave out. */
const ownStates = fileURLToPath(new URL("states", import.meta.url));

/**
 * Every reference state that lies in test/golden/states and in ../shared/golden, where that is (see `sharedPath`); or in the folder
 * that TROUPE_GOLDEN names. Whatever lies there is tested: nothing is known of it but its files.
 */
export function goldenFolders(): GoldenFolder[] {
  const shared = sharedPath("golden");
  const named = process.env.TROUPE_GOLDEN;
  const roots = named === undefined ? [ownStates, ...(shared === undefined ? [] : [shared])] : [named];
  return roots.flatMap(foldersIn).toSorted((a, b) => (a.name < b.name ? -1 : 1));
}

function foldersIn(root: string): GoldenFolder[] {
  return readdirSync(root, { withFileTypes: true })
    .filter((entry) => entry.isDirectory() && existsSync(join(root, entry.name, "golden.safetensors")))
    .map(({ name }) => describeFolder(name, join(root, name)));
}

function describeFolder(name: string, path: string): GoldenFolder {
  const adapter = existsSync(join(path, "adapter")) ? join(path, "adapter") : undefined;
  const base = adapter === undefined ? path : join(path, "base");
  const place = { name, path, base, adapter };
  const file = join(base, "config.json");
  if (!existsSync(file)) return { ...place, config: {}, task: undefined, lacks: "no config.json" };
  const config = JSON.parse(readFileSync(file, "utf8")) as Record<string, unknown>;
  const task = taskOf(config);
  const known = task !== undefined && hasModel(task, config);
  return { ...place, config, task, lacks: known ? undefined : `no ${config.model_type} for ${task}` };
}

/** The model of a reference state, declared without memory, with its delta where it has one. */
export function declareGolden({
  base,
  adapter,
  task,
}: Pick<GoldenFolder, "base" | "adapter" | "task">): TaskModel {
  const config = JSON.parse(readFileSync(join(base, "config.json"), "utf8")) as Record<string, unknown>;
  const model = autoModel(task as Task, config);
  return adapter === undefined ? model : applyDelta(model, deltaFrom(adapter));
}

/** Reads the weights of a reference state into its model, and those of its delta. */
export async function loadGolden(
  model: TaskModel,
  { base, adapter }: Pick<GoldenFolder, "base" | "adapter">,
): Promise<void> {
  await using folder = await HuggingFaceFolder.open(base);
  if (adapter === undefined) return await loadWeights(model, folder);
  const { matched } = pretrained(model, new Map(folder.names.map((name) => [name, folder.entry(name)])));
  await copyWeights(model, matched, folder);
  await loadDelta(adapter, model);
}

/** Maps a gradient's name to the model's parameter name, both without their prefixes. */
export function bareNames(model: TaskModel): (name: string) => string {
  const bare = bareName(model.stateNaming);
  return (name) => {
    const [, ofPrompt] = /(?:^|\.)prompt(?:_encoder\.default)?\.(.+)$/.exec(`.${name}`) ?? [];
    return name === "prompt_embeddings" ? name : (ofPrompt ?? bare(ownName(name)));
  };
}

/** Opens a reference state; its tensors are the caller's to release. */
export async function openGolden(path: string): Promise<Golden> {
  await using file = await SafetensorsFile.open(join(path, "golden.safetensors"));
  const state = new Map<string, Tensor>();
  for (const { name, dtype, shape } of file.tensors.values()) {
    const { buffer } = await file.read(name);
    const data = dtype === "I64" ? new BigInt64Array(buffer) : new Float32Array(buffer);
    state.set(name, keep(tensor(data, { shape })));
  }
  const recipe = JSON.parse(await readFile(join(path, "golden.json"), "utf8"));
  return { state, recipe };
}

/**
 * Below which part of the largest gradient of a model the largest of one parameter is no measure for its errors: that of a
 * key's bias is 0 but for rounding, since softmax does not see what is added to all scores. What is small because much of it
 * cancels is not known better: of convolutions below a norm the reference itself is up to 1e-5 from a float64 one.
 */
export const GRADIENT_FLOOR = 0.1;

/** Names that are asked for, and not read: without them a model answers its outputs. */
const ASKED = ["labels", "nextSentenceLabel", "startPositions", "endPositions"];

/** The batch as our models name it: `input.token_type_ids` is `tokenTypeIds`. */
export function batchOf(state: ReadonlyMap<string, Tensor>): Record<string, Tensor> {
  return named(state, "input.");
}

/** The same without the targets, from which a decoder reads the tokens before each position. */
export function questionOf(
  batch: Readonly<Record<string, Tensor>>,
  config: GoldenFolder["config"],
): Record<string, Tensor> {
  const question = Object.fromEntries(Object.entries(batch).filter(([name]) => !ASKED.includes(name)));
  const { labels } = batch;
  if (!config.is_encoder_decoder || labels === undefined) return question;
  const padding = Number(config.pad_token_id);
  const start = Number(config.decoder_start_token_id ?? padding);
  return { decoderInputIds: shiftRight(labels, start, padding), ...question };
}

/** The model's outputs, by our models' names. */
export function outputsOf(state: ReadonlyMap<string, Tensor>): Record<string, Tensor> {
  return named(state, "output.");
}

function named(state: ReadonlyMap<string, Tensor>, prefix: string): Record<string, Tensor> {
  const names = [...state.keys()].filter((name) => name.startsWith(prefix));
  return Object.fromEntries(
    names.map((name) => [camelCase(name.slice(prefix.length)), state.get(name) as Tensor]),
  );
}

function camelCase(name: string): string {
  return name.replaceAll(/_(\w)/g, (_, letter: string) => letter.toUpperCase());
}

/**
 * Largest difference, relative to the largest expected value.
 * @param floor - what that is taken to be at least
 */
export function relativeError(got: ArrayLike<number>, expected: ArrayLike<number>, floor = 0): number {
  let most = 0;
  let largest = floor;
  for (let index = 0; index < expected.length; index++) {
    const difference = Math.abs((got[index] ?? Number.NaN) - (expected[index] as number));
    most = Number.isNaN(difference) ? Number.POSITIVE_INFINITY : Math.max(most, difference);
    largest = Math.max(largest, Math.abs(expected[index] as number));
  }
  if (got.length !== expected.length) return Number.POSITIVE_INFINITY;
  return most === 0 ? 0 : most / largest;
}
