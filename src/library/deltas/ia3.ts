import { type Affine, type Module, ones, Parameter } from "../../compute/nn/index.ts";
import { type CommonDeltaOptions, type Delta, type DeltaJson, deltaTarget } from "./delta.ts";
import { deltasOf, headsOf, peftTask } from "./family.ts";
import { foreignNames } from "./peft-names.ts";
import { affineTargets, isNamed, liesIn, type Target } from "./target.ts";

/** Options of {@link ia3}; names and defaults are peft's. */
export interface Ia3Options extends CommonDeltaOptions {
  /** The affine maps to rescale. Default: peft's for the model's family. */
  readonly target?: Target | undefined;
  readonly exclude?: readonly string[] | RegExp | undefined;
  /** Targets whose inputs are rescaled instead of their outputs. Default: peft's for the family. */
  readonly feedForward?: readonly string[] | RegExp | undefined;
}

/**
 * (IA)³: multiplies each output of a target map, or each input of a feed-forward one, by a trained number that starts at 1. Nothing
 * else is trained.
 * @throws {TroupeError} `DELTA_TARGET`
 * @see Liu et al. 2022, https://arxiv.org/abs/2205.05638
 */
export function ia3(options: Ia3Options = {}): Delta {
  return {
    peftType: "IA3",
    folder: options.folder,
    attach: (model) => {
      const foreign = foreignNames(model);
      const { feedForward } = meantOf(options, model);
      for (const [name, map] of tunedMaps(options, model)) {
        if (map.scale !== undefined) throw deltaTarget(`one delta at ${name}`, "two");
        const isFeedForward = [name, foreign(name)].some((each) => isNamed(each, feedForward));
        const [numOutputs = 0, numInputs = 0] = [
          map.weight.shape[map.outputDim],
          map.weight.shape[1 - map.outputDim],
        ];
        const factors = new Parameter(isFeedForward ? [1, numInputs] : [numOutputs, 1], ones);
        Object.assign(map, { ia3_l: factors }); // parameters are named by their property
        map.scale = { of: isFeedForward ? "inputs" : "outputs", factors };
      }
    },
    trains: (name, model) => liesIn(name, options.modulesToSave ?? headsOf(model)),
    configJson: (model) => ia3Json(options, model),
  };
}

/** The target maps, and those of them whose inputs are rescaled. */
function meantOf(
  { target, feedForward }: Ia3Options,
  model: Module,
): { readonly target: Target; readonly feedForward: readonly string[] | RegExp } {
  const known = deltasOf(model).ia3;
  const meant = target ?? known?.target;
  if (meant !== undefined)
    return {
      target: meant,
      feedForward: feedForward ?? (target === undefined ? known?.feedForward : []) ?? [],
    };
  throw deltaTarget("a target", `none, of ${model.constructor.name}`, 'name modules, or "all-linear"');
}

function tunedMaps(options: Ia3Options, model: Module): Map<string, Affine> {
  const saved = options.modulesToSave ?? headsOf(model);
  const { exclude } = options;
  return affineTargets(model, { target: meantOf(options, model).target, exclude, saved });
}

function ia3Json(options: Ia3Options, model: Module): DeltaJson {
  const saved = options.modulesToSave ?? headsOf(model);
  const { exclude } = options;
  // All names are listed in full: ends of names could match more maps.
  const foreign = foreignNames(model);
  const maps = [...tunedMaps(options, model)];
  const feedForward = maps.filter(([, { scale }]) => scale?.of === "inputs");
  return {
    peft_type: "IA3",
    task_type: peftTask(model),
    target_modules: maps.map(([name]) => foreign(name)),
    feedforward_modules: feedForward.map(([name]) => foreign(name)),
    exclude_modules: exclude === undefined ? null : exclude instanceof RegExp ? exclude.source : exclude,
    modules_to_save: saved.length === 0 ? null : saved,
    init_ia3_weights: true,
    fan_in_fan_out: maps.some(([, { outputDim }]) => outputDim === 1),
  };
}
