import { describeValue, type NamesOf } from "../../errors/index.ts";
import { atLeastZero } from "./checks.ts";
import { clipRuleOf } from "./clip.ts";
import { optionError, refuseUnknown } from "./option-error.ts";
import {
  checkNamedShapes,
  DECAYS,
  type Decay,
  type GroupRule,
  groupParameters,
  matchesName,
  type NamedShapes,
  type ParameterGroup,
} from "./parameter-groups.ts";

/** Options of every optimizer. */
export interface OptimizerOptions {
  /** Peak learning rate; a schedule sets that of each step. */
  readonly lr?: number;
  readonly weightDecay?: number;
  /**
   * The parameters that weight decay applies to. Default: "matrices", those of two or more dims. torch's optimizers decay every
   * parameter: "every parameter" gives their updates.
   */
  readonly decay?: Decay;
  /** Exceptions by name or shape. */
  readonly groups?: readonly GroupRule[];
  /** Whether the update ascends the gradient instead of descending it. Default: false. */
  readonly maximize?: boolean;
  /** Largest L2 norm of the averaged gradient of this optimizer's parameters, instead of the job's rule. */
  readonly clipNorm?: number;
  /** Takes only parameters whose names match; other optimizers of the job take the rest. Default: all. */
  readonly only?: RegExp;
}

// biome-ignore format: a list
const commonNames: NamesOf<OptimizerOptions> = {
  lr: true, weightDecay: true, decay: true, groups: true, maximize: true, clipNorm: true, only: true,
};

/** An optimizer's default options. Names every option that it takes besides those of every optimizer. */
export type Defaults<Options extends OptimizerOptions> = {
  readonly lr: number;
  readonly weightDecay: number;
  readonly decay?: Decay;
} & { readonly [Name in Exclude<keyof Options, keyof OptimizerOptions>]-?: Options[Name] | undefined };

/** The base of every optimizer; its fields are plain, so sending it as a message keeps them. */
export abstract class CommonOptimizer {
  readonly lr: number;
  readonly groups: readonly ParameterGroup[];
  readonly maximize: boolean;
  readonly clipNorm: number | undefined;

  /**
   * @param parameters - names with shapes: `module.namedParameters()`
   * @throws {TroupeError} `OPTIMIZER_OPTION` for an option out of range, or that it does not have
   */
  constructor(parameters: NamedShapes, options: OptimizerOptions, defaults: Defaults<OptimizerOptions>) {
    const given = checkNamedShapes(parameters);
    refuseUnknown(options, { ...commonNames, ...defaults });
    const { only, decay = defaults.decay ?? "matrices", groups: rules = [] } = options;
    if (!DECAYS.includes(decay))
      throw optionError("decay", DECAYS.map((each) => `"${each}"`).join(" or "), decay);
    const weightDecay = atLeastZero("weightDecay", options.weightDecay ?? defaults.weightDecay);
    const mine = only === undefined ? given : [...given].filter(([name]) => matchesName(only, name));
    this.lr = atLeastZero("lr", options.lr ?? defaults.lr);
    this.groups = groupParameters(mine, { weightDecay, decay, rules });
    this.maximize = options.maximize ?? false;
    this.clipNorm = ownLimit(options.clipNorm);
  }
}

/** The largest norm of one optimizer's gradient. A job's rule is more than that, and may not be taken for it. */
function ownLimit(clipNorm: unknown): number | undefined {
  if (clipNorm === undefined) return undefined;
  if (typeof clipNorm === "number") return clipRuleOf(clipNorm)?.max;
  throw optionError("clipNorm", "a number, an optimizer's largest L2 norm", describeValue(clipNorm));
}

/** The fields of every optimizer, as plain data. */
export type CommonSpec = CommonOptimizer;
