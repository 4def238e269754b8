import { Affine, Dropout, Linear, type Module, normal, uniform, zeros } from "../../compute/nn/index.ts";
import { type CommonDeltaOptions, type Delta, type DeltaJson, deltaOption, deltaTarget } from "./delta.ts";
import { deltasOf, headsOf, peftTask } from "./family.ts";
import { foreignNames } from "./peft-names.ts";
import { affineTargets, fullPattern, liesIn, type Target } from "./target.ts";

/** Options of {@link lora}; names and defaults are peft's. */
export interface LoraOptions extends CommonDeltaOptions {
  /** Rank r of the low-rank product. Default: 8. */
  readonly rank?: number;
  /** The product is scaled by alpha / rank. Default: 8. */
  readonly alpha?: number;
  /** Dropout probability of the low-rank product's inputs. Default: 0. */
  readonly dropout?: number;
  /** The affine maps to tune. Default: peft's for the model's family. */
  readonly target?: Target;
  readonly exclude?: readonly string[] | RegExp | undefined;
  /** Indices of the layers to tune. Default: all. */
  readonly layers?: readonly number[] | undefined;
  /** Name in front of a layer's index, such as `layer`, or several, of which the first match counts. Default: any. */
  readonly layersPattern?: string | readonly string[] | undefined;
  /** Other ranks and alphas for some maps, by a pattern of the end of their names, the model's own or transformers'. */
  readonly rankPattern?: Readonly<Record<string, number>>;
  readonly alphaPattern?: Readonly<Record<string, number>>;
  /** Whether the product is scaled by alpha / √rank instead. @see Kalajdzievski 2023, https://arxiv.org/abs/2312.03732 */
  readonly rsLora?: boolean;
  /** Which of the model's biases are trained too: none, all, or those of the target maps. Default: "none". */
  readonly bias?: "none" | "all" | "lora_only";
  /** How matrix A starts: uniform in ±1/√in, or normal with deviation 1/rank. Matrix B starts at zero. */
  readonly init?: "uniform" | "gaussian";
}

/**
 * Low-rank adaptation: scale · x Aᵀ Bᵀ is added to each tuned map x W, and only A and B are trained.
 * @throws {TroupeError} `DELTA_OPTION`
 * @see Hu et al. 2021, https://arxiv.org/abs/2106.09685
 */
export function lora(options: LoraOptions = {}): Delta {
  const { rank = 8, dropout = 0, bias = "none", folder } = options;
  if (!Number.isSafeInteger(rank) || rank < 1) throw deltaOption("rank", "a whole number ≥ 1", rank);
  if (!(dropout >= 0 && dropout < 1)) throw deltaOption("dropout", "in [0, 1)", dropout);
  return {
    peftType: "LORA",
    folder,
    attach: (model) => {
      const foreign = foreignNames(model);
      for (const [name, module] of tunedMaps(options, model)) addLora(module, [name, foreign(name)], options);
    },
    trains: (name, model) =>
      (bias === "all" && isBias(name)) ||
      (bias === "lora_only" && isTunedBias(name, model)) ||
      liesIn(name, options.modulesToSave ?? headsOf(model)),
    configJson: (model) => loraJson(options, model),
  };
}

/** The target maps, except modules that are trained completely. */
function tunedMaps(options: LoraOptions, model: Module): Map<string, Affine> {
  const saved = options.modulesToSave ?? headsOf(model);
  return affineTargets(model, { ...options, target: targetOf(options, model), saved });
}

function targetOf({ target }: LoraOptions, model: Module): Target {
  const meant = target ?? deltasOf(model).lora;
  if (meant !== undefined) return meant;
  throw deltaTarget("a target", `none, of ${model.constructor.name}`, 'name modules, or "all-linear"');
}

type Patterns = NonNullable<LoraOptions["rankPattern"]>;

/** @param names - the map's own, and transformers' */
function addLora(module: Affine, names: readonly [own: string, foreign: string], options: LoraOptions): void {
  if (module.added !== undefined) throw deltaTarget(`one delta at ${names[0]}`, "two");
  const { rank: commonRank = 8, alpha: commonAlpha = 8, dropout = 0, rsLora = false } = options;
  const rank = ofPattern(options.rankPattern, names) ?? commonRank;
  const alpha = ofPattern(options.alphaPattern, names) ?? commonAlpha;
  const { shape } = module.weight;
  const [numOutputs = 0, numInputs = 0] = [shape[module.outputDim], shape[1 - module.outputDim]];
  const bound = 1 / Math.sqrt(numInputs);
  const init = options.init === "gaussian" ? normal(0, 1 / rank) : uniform(-bound, bound);
  const down = new Linear(numInputs, rank, { bias: false, init });
  const up = new Linear(rank, numOutputs, { bias: false, init: zeros });
  const before = dropout > 0 ? new Dropout(dropout) : undefined;
  const children = { ...(before && { lora_dropout: before }), lora_A: down, lora_B: up };
  for (const child of Object.values(children)) child.train(module.training);
  Object.assign(module, children); // modules are named by their property
  module.added = { ...(before && { before }), down, up, scale: alpha / (rsLora ? Math.sqrt(rank) : rank) };
}

/** The value of the first pattern that matches one of a map's names or its end, as in peft. */
function ofPattern(patterns: Patterns = {}, names: readonly string[]): number | undefined {
  const found = Object.keys(patterns).find((pattern) => {
    const end = fullPattern(new RegExp(`(?:.*\\.)?(?:${pattern})`));
    return names.some((name) => end.test(name));
  });
  return found === undefined ? undefined : patterns[found];
}

const isBias = (name: string): boolean => name === "bias" || name.endsWith(".bias");

function isTunedBias(name: string, model: Module): boolean {
  if (!isBias(name)) return false;
  return isTuned(model.namedModules().get(name.slice(0, -".bias".length)));
}

function loraJson(options: LoraOptions, model: Module): DeltaJson {
  const { rank = 8, alpha = 8, dropout = 0, bias = "none", rsLora = false, init } = options;
  const { exclude, layers = null, layersPattern = null, rankPattern = {}, alphaPattern = {} } = options;
  const saved = options.modulesToSave ?? headsOf(model);
  const target = targetOf(options, model);
  return {
    peft_type: "LORA",
    task_type: peftTask(model),
    r: rank,
    lora_alpha: alpha,
    lora_dropout: dropout,
    target_modules: target instanceof RegExp ? target.source : namesOf(target, model),
    exclude_modules: exclude === undefined ? null : exclude instanceof RegExp ? exclude.source : exclude,
    layers_to_transform: layers,
    layers_pattern: layersPattern,
    rank_pattern: foreignPatterns(rankPattern, model),
    alpha_pattern: foreignPatterns(alphaPattern, model),
    use_rslora: rsLora,
    bias,
    modules_to_save: saved.length === 0 ? null : saved,
    init_lora_weights: init === "gaussian" ? "gaussian" : true,
    fan_in_fan_out: model.namedModules().values().some(isTransposed),
  };
}

/** Names by which peft finds the same maps: all in full for `all-linear`, or if transformers' names differ. */
function namesOf(target: readonly string[] | "all-linear", model: Module): readonly string[] {
  const foreign = foreignNames(model);
  const maps = tunedNames(model);
  return target === "all-linear" || maps.some((name) => foreign(name) !== name) ? maps.map(foreign) : target;
}

/** Patterns by which peft finds the same maps: their names in full if transformers' names differ. */
function foreignPatterns(patterns: Patterns, model: Module): Patterns {
  const foreign = foreignNames(model);
  const maps = tunedNames(model);
  if (maps.every((name) => foreign(name) === name)) return patterns;
  const values = maps.map((name) => [foreign(name), ofPattern(patterns, [name, foreign(name)])] as const);
  return Object.fromEntries(values.filter((entry): entry is [string, number] => entry[1] !== undefined));
}

function tunedNames(model: Module): string[] {
  return [...model.namedModules()].filter(([, module]) => isTuned(module)).map(([name]) => name);
}

/** Whether a tuned map's weight is [in, out]: GPT-2's. */
const isTransposed = (module: Module): boolean => isTuned(module) && module.outputDim === 1;

function isTuned(module: Module | undefined): module is Affine {
  return module instanceof Affine && module.added !== undefined;
}
