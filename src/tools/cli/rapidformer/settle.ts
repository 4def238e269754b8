import { commandSchema, type Given, optionsOf, readText } from "../../../job/options/index.ts";
import { type Flag, flags } from "../../../job/rapidformer/index.ts";
import { openCheckpoint } from "../../../library/checkpoint/index.ts";
import { findData, findModel, findPrefix, type HubOptions } from "../../../library/hub/index.ts";
import { usage } from "../flags.ts";
import type { Typed, TypedFlags } from "./parse.ts";

type Environment = Readonly<Record<string, string | undefined>>;

/** Options and settings that Rapidformer's flags stand for. */
export interface Settled {
  /** Options of the runtime and settings of the job; later ones win. */
  readonly given: readonly Given[];
  /** The user's module to train; undefined where the task alone decides. */
  readonly userScript: string | undefined;
  /** Notes for the user before the run begins. */
  readonly notices: readonly string[];
}

/**
 * Turns Rapidformer's flags and its launchers' variables into options of the runtime and settings of the job. Names are
 * looked up last, and may be downloaded then.
 * @param typed - by the flags' names
 * @param others - options from the runtime's own flags, which win
 * @param tell - receives lines about downloads
 * @throws {TroupeError} `USAGE`, `HUB` for flags that contradict each other or names that do not exist, before anything
 * is started
 */
export async function settle(
  typed: TypedFlags,
  others: readonly Given[],
  environment: Environment = process.env,
  tell: (line: string) => void = () => {},
): Promise<Settled> {
  const notices: string[] = [];
  const ranks = ranksOf(typed, others, environment);
  const { batch, accumulation, notice } = batchOf(typed, others, ranks.number);
  const given = [
    ...standing(typed),
    ...alsoAs("seed", others, "seed"),
    ...(ranks.given === undefined ? [] : [ranks.given]),
    ...flags.flatMap((flag) => (flag.flag === LOAD && typed.has(FINETUNE) ? [] : of(flag, typed))),
    ...(await finetunedFrom(typed)),
    ...precisionOf(typed, others, notices),
    ...lossScaleOf(typed),
    ...chunksOf(typed, others),
    ...alsoAs("tp", others, "tensorModelParallelSize"),
    ...(accumulation === undefined ? [] : [flagged("accumulation", accumulation, "--micro-batch-size")]),
    ...batch,
    ...(await places(typed, { environment, tell })),
  ];
  if (notice !== undefined) notices.push(notice);
  for (const { flag, fate } of flags)
    if (fate.is === "no-op" && typed.has(flag)) notices.push(`${flag}: ${fate.reason}`);
  const userScript = typed.get("--user-script");
  return { given, userScript: userScript === undefined ? undefined : String(userScript), notices };
}

const flagged = (path: string, value: unknown, by: string): Given => {
  return { path: path.split("."), value, origin: "flag", by };
};
const standard = (path: string, value: unknown): Given => {
  return { path: path.split("."), value, origin: "default", by: "" };
};

/** The last option at a path. */
const lastAt = (path: string, given: readonly Given[]) =>
  given.findLast((each) => each.path.join(".") === path);

/** An option, given again as a setting of the job. */
const alsoAs = (path: string, given: readonly Given[], setting: string): Given[] =>
  given.filter((each) => each.path.join(".") === path).map((each) => ({ ...each, path: ["set", setting] }));

const options = new Map(optionsOf(commandSchema).map((each) => [each.name, each]));

/** What Rapidformer has where nothing is said, and Troupe has otherwise. */
function standing(typed: TypedFlags): Given[] {
  const given = flags.filter(
    ({ flag, fate }) => typed.has(flag) && fate.is === "option" && fate.path === "zero",
  );
  if (given.length > 1)
    throw usage(
      "one of the flags that split states",
      given.map(({ flag }) => flag).join(" and "),
      "leave all but one out",
    );
  return [standard("zero", 0), standard("seed", 1234), standard("set.seed", 1234)];
}

/** Options that one flag gives. */
function of({ flag, fate }: Flag, typed: TypedFlags): Given[] {
  const value = typed.get(flag);
  if (value === undefined) return [];
  if (fate.is === "setting") return [flagged(`set.${fate.name}`, fate.value ?? settingOf(value), flag)];
  if (fate.is !== "option") return [];
  const option = options.get(fate.path);
  const read = typeof value === "string" && option !== undefined ? readText(option, value) : value;
  const said = flagged(fate.path, fate.value ?? read, flag);
  if (fate.path === "seed") return [said, flagged("set.seed", read, flag)];
  return fate.path === "tp" ? [said, flagged("set.tensorModelParallelSize", read, flag)] : [said];
}

function settingOf(value: Typed): string | number | boolean {
  if (typeof value === "object") return value.join(" ");
  return value === "casual_lm" ? "causal_lm" : value;
}

/** The number of ranks: one for each device that the launcher lists for every host, unless the command line gives it. */
function ranksOf(
  typed: TypedFlags,
  others: readonly Given[],
  environment: Environment,
): { readonly number: number; readonly given: Given | undefined } {
  const split = splitOf("tp", typed, others) * splitOf("pp", typed, others);
  const said = lastAt("ranks", others);
  const devices = environment.CUDA_VISIBLE_DEVICES?.split(",").filter((device) => device.trim() !== "") ?? [];
  const onAllHosts = devices.length * Number(environment.NNODES ?? 1);
  const number = said === undefined ? onAllHosts || split : Number(said.value);
  if (Number.isSafeInteger(number) && number % split !== 0)
    throw usage(
      `ranks that ${split} divide, which are --tensor-model-parallel-size × --pipeline-model-parallel-size`,
      `${number}`,
      number > split ? `--ranks ${number - (number % split)}` : largest(number),
    );
  if (said !== undefined) return { number, given: undefined };
  const by = devices.length > 0 ? "CUDA_VISIBLE_DEVICES" : "--tensor-model-parallel-size";
  const origin = devices.length > 0 ? "environment" : "default";
  return {
    number,
    given: { path: ["ranks"], value: number, origin, by: split > 1 || devices.length > 0 ? by : "" },
  };
}

/** A hint with the largest layouts that fit: Megatron would silently use fewer stages. */
function largest(ranks: number): string {
  const layouts = Array.from({ length: ranks }, (_, index) => index + 1).filter((tp) => ranks % tp === 0);
  return `on ${ranks} ranks there is room for ${layouts.map((tp) => `${tp} × ${ranks / tp}`).join(", ")}`;
}

const splitFlags = { tp: "--tensor-model-parallel-size", pp: "--pipeline-model-parallel-size" } as const;

/** Ranks that split each layer (tp), or the layers (pp); the runtime's own flag wins. */
function splitOf(axis: keyof typeof splitFlags, typed: TypedFlags, others: readonly Given[]): number {
  const value = lastAt(axis, others)?.value ?? typed.get(splitFlags[axis]);
  return typeof value === "number" && value >= 1 ? value : 1;
}

const RAMP = "--rampup-batch-size";

/** Samples of one replica's forward by default, as in transformers' Trainer. */
const STANDARD_MICRO_BATCH = 8;

/** The batch of a step, and the micro-batches that each replica divides its share into. */
function batchOf(
  typed: TypedFlags,
  others: readonly Given[],
  ranks: number,
): { readonly batch: readonly Given[]; readonly accumulation: number | undefined; readonly notice?: string } {
  const [micro, size] = [typed.get("--micro-batch-size"), typed.get("--global-batch-size")];
  const split = splitOf("tp", typed, others) * splitOf("pp", typed, others);
  const replicas = Math.max(1, Math.floor(ranks / split));
  const said = (path: string) => lastAt(path, others)?.value;
  if (typeof micro !== "number" && typeof size !== "number" && said("set.globalBatchSize") === undefined) {
    const accumulation = Number(said("accumulation") ?? 1);
    const value = STANDARD_MICRO_BATCH * replicas * accumulation;
    return {
      batch: [standard("set.globalBatchSize", value)],
      accumulation: undefined,
      notice: `--global-batch-size: ${value}, as no batch size was given: micro-batches of ${STANDARD_MICRO_BATCH}, each replica ${accumulation}`,
    };
  }
  if (typeof micro !== "number" || said("accumulation") !== undefined)
    return { batch: [], accumulation: undefined };
  const at = flagged("set.microBatchSize", micro, "--micro-batch-size");
  if (typeof size !== "number")
    return { batch: [at, standard("set.globalBatchSize", micro * replicas)], accumulation: 1 };
  const accumulation = size / (micro * replicas);
  const [start, increment] = (typed.get(RAMP) ?? []) as readonly string[];
  for (const size of [start, increment])
    if (size !== undefined && Number(size) % (micro * replicas) !== 0)
      throw usage(
        `${RAMP} of multiples of ${micro * replicas}, --micro-batch-size ${micro} on each of ${replicas} replicas`,
        size,
        "a batch grows by complete micro-batches",
      );
  if (Number.isSafeInteger(accumulation) && accumulation >= 1) return { batch: [at], accumulation };
  const nearest = Math.max(1, Math.ceil(accumulation)) * micro * replicas;
  const fixes = [
    `--global-batch-size ${nearest}`,
    ...(size % replicas === 0 ? [`--micro-batch-size ${size / replicas}`] : []),
    ...(size % micro === 0 ? [`--ranks ${fitting(size / micro, replicas) * split}`] : []),
  ];
  throw usage(
    `--global-batch-size to be a multiple of ${micro * replicas}, --micro-batch-size ${micro} on each of ${replicas} replicas`,
    `${size}`,
    fixes.join(", or "),
  );
}

/** The largest number of replicas, up to the present one, that divides the micro-batches of a step. */
function fitting(microBatches: number, replicas: number): number {
  for (let number = Math.min(replicas, microBatches); number > 1; number--)
    if (microBatches % number === 0) return number;
  return 1;
}

/** Precision by default: bfloat16 instead of float16 on the CPU, with the same memory and no loss scale to find. */
function precisionOf(typed: TypedFlags, others: readonly Given[], notices: string[]): Given[] {
  const said = ["--mixed-precision", "--fp16", "--bf16"].filter((flag) => typed.has(flag));
  if (said.length > 1) throw usage("one precision", said.join(" and "), "leave all but one out");
  if (!typed.has("--mixed-precision")) return [];
  const device = String(lastAt("device", others)?.value ?? "cpu");
  if (device.startsWith("cuda")) return [flagged("precision", "amp-fp16", "--mixed-precision")];
  notices.push("--mixed-precision: amp-bf16, as float16 is for GPUs; another: --fp16, --bf16, --precision");
  return [flagged("precision", "amp-bf16", "--mixed-precision")];
}

const scaleNames = {
  "--initial-loss-scale": "scale",
  "--min-loss-scale": "min",
  "--loss-scale-window": "window",
  "--hysteresis": "hysteresis",
} as const;

function lossScaleOf(typed: TypedFlags): Given[] {
  const said = Object.entries(scaleNames).filter(([flag]) => typed.has(flag));
  const [[first] = [""]] = said;
  if (first === "") return [];
  if (typed.has("--loss-scale"))
    throw usage(`--loss-scale for good, or ${first} for one that changes`, "both", "leave one out");
  const rule = Object.fromEntries(said.map(([flag, name]) => [name, typed.get(flag)]));
  return [flagged("lossScale", { kind: "megatron", ...rule }, first)];
}

const [LOAD, FINETUNE] = ["--load", "--finetune"];

/** Loads only a checkpoint's weights and starts a new run. A model given by name always does that. */
async function finetunedFrom(typed: TypedFlags): Promise<Given[]> {
  const folder = typed.get(LOAD);
  if (!typed.has(FINETUNE)) return [];
  if (folder === undefined && !typed.has("--pretrained-model-name-or-path"))
    throw usage(`${LOAD} DIR with ${FINETUNE}`, "none", "a folder with the weights to begin with");
  if (folder === undefined) return [];
  await using checkpoint = await openCheckpoint(String(folder));
  return [flagged("set.loadedWeights", checkpoint.path, FINETUNE)];
}

const CHUNKS = "--num-layers-per-virtual-pipeline-stage";

function chunksOf(typed: TypedFlags, others: readonly Given[]): Given[] {
  const [each, layers] = [typed.get(CHUNKS), typed.get("--num-layers")];
  if (each === undefined) return [];
  const stages = splitOf("pp", typed, others);
  const chunks = Number(layers) / (stages * Number(each));
  if (Number.isSafeInteger(chunks)) return [flagged("chunks", chunks, CHUNKS)];
  throw usage(
    `${CHUNKS} × --pipeline-model-parallel-size ${stages} to divide --num-layers`,
    `${each} of ${layers ?? "none given"}`,
    "such as 1",
  );
}

/** Resolves names to folders and files once, before any rank begins. */
async function places(typed: TypedFlags, hub: HubOptions): Promise<Given[]> {
  const given: Given[] = [];
  const give = (flag: string, settings: Readonly<Record<string, string>>) => {
    for (const [name, value] of Object.entries(settings)) given.push(flagged(`set.${name}`, value, flag));
  };
  const words = typed.get("--data-path") as readonly string[] | undefined;
  const datasetName = String(typed.get("--data-name") ?? "");
  if (words !== undefined) {
    const dataPath = await dataPlace(words, datasetName, typed, hub);
    give("--data-path", { dataPath, datasetPath: words.join(" "), datasetName });
  }
  const model = typed.get("--pretrained-model-name-or-path");
  if (model === undefined) return given;
  const load = await findModel(String(model), hub);
  give("--pretrained-model-name-or-path", { pretrainedModelNameOrPath: load, load });
  return given;
}

/** A prefix of indexed data, several prefixes with weights, or a dataset. */
async function dataPlace(
  words: readonly string[],
  part: string,
  typed: TypedFlags,
  hub: HubOptions,
): Promise<string> {
  if (words.length > 1)
    return words.map((word, index) => (index % 2 === 0 ? word : findPrefix(word, hub))).join(" ");
  const [name = ""] = words;
  // Pre-training reads indexed data, and so does a script with flags for its split or format.
  const isIndexed =
    typed.get("--task") === "pretraining" || ["--data-impl", "--split"].some((flag) => typed.has(flag));
  return isIndexed ? findPrefix(name, hub) : findData(name, part, hub);
}

/** Translates the variables of Rapidformer's scripts into those of launchers. @throws {TroupeError} `USAGE` */
export function launchVariables(environment: Environment): Readonly<Record<string, string>> {
  const { NNODES = "1", NODE_RANK = "0", RANK, WORLD_SIZE } = environment;
  const [hosts, host] = [Number(NNODES), Number(NODE_RANK)];
  const isPlace = Number.isSafeInteger(hosts) && Number.isSafeInteger(host) && host >= 0 && host < hosts;
  if (!isPlace)
    throw usage(
      "NODE_RANK from 0 to below NNODES",
      `NNODES=${NNODES} and NODE_RANK=${NODE_RANK}`,
      "such as 2 and 0",
    );
  if (hosts === 1 || RANK !== undefined || WORLD_SIZE !== undefined) return {};
  return { RANK: NODE_RANK, WORLD_SIZE: NNODES };
}
