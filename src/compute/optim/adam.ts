import { ops, type Tensor } from "../tensor/index.ts";
import { atLeastZero, checkBetas } from "./checks.ts";
import { kept, type LocalUpdate } from "./local-updates.ts";
import { optionError } from "./option-error.ts";
import type { NamedShapes } from "./parameter-groups.ts";
import {
  CommonOptimizer,
  type CommonSpec,
  type Defaults,
  type OptimizerOptions,
} from "./parameter-options.ts";
import { fusedRule, type OptimizerKind, stateTensor } from "./update-rule.ts";

/** Options of Adam in its forms. */
export interface AdamOptions extends OptimizerOptions {
  /** Decay of the first and second moment. Default: [0.9, 0.999]. */
  readonly betas?: readonly [number, number];
  /** Added to the root of the second moment. Default: 1e-8. */
  readonly eps?: number;
}

/** Options of {@link AdamW}; torch's defaults: lr 1e-3, weightDecay 0.01. */
export type AdamWOptions = AdamOptions;

/** Options of {@link BMTrainAdam}. */
export interface BMTrainAdamOptions extends AdamOptions {
  /** Updates at whose start the parameters are held: the moments gather, the learning rate is 0. Default: 0. */
  readonly holdSteps?: number;
}

const adamDefaults = {
  lr: 1e-3,
  weightDecay: 0,
  betas: [0.9, 0.999],
  eps: 1e-8,
} as const satisfies Defaults<AdamOptions>;
const adamWDefaults = { ...adamDefaults, weightDecay: 0.01 } as const;
const bmtrainDefaults = {
  ...adamDefaults,
  decay: "every parameter",
  holdSteps: 0,
} as const satisfies Defaults<BMTrainAdamOptions>;

/**
 * Adam as plain data: what a shard, which holds the parameters and the moments, needs to update its slice.
 * - `adamw`: decoupled decay, torch.optim.AdamW;
 * - `adam`: decay added to the gradient, torch.optim.Adam, and BMTrain's form for float32;
 * - `bmtrain-adam`: decoupled decay in the order of BMTrain's kernels for half precision.
 */
export interface AdamSpec extends CommonSpec {
  readonly kind: "adamw" | "adam" | "bmtrain-adam";
  readonly betas: readonly [number, number];
  readonly eps: number;
  readonly holdSteps?: number;
}

/** {@link AdamW} as plain data. */
export interface AdamWSpec extends AdamSpec {
  readonly kind: "adamw";
}

/** The base of optimizers with Adam's two moments. */
export abstract class AdamLike extends CommonOptimizer {
  readonly betas: readonly [number, number];
  readonly eps: number;

  /**
   * @param parameters - names with shapes: `module.namedParameters()`
   * @throws `OPTIMIZER_OPTION` for an option out of range, or that it does not have
   */
  constructor(
    parameters: NamedShapes,
    options: AdamOptions,
    defaults: Defaults<AdamOptions> & Pick<Required<AdamOptions>, "betas" | "eps">,
  ) {
    super(parameters, options, defaults);
    this.betas = checkBetas(options.betas ?? defaults.betas);
    this.eps = atLeastZero("eps", options.eps ?? defaults.eps);
  }
}

/**
 * Adam with decoupled weight decay, by the formulas of torch.optim.AdamW. It holds no tensors: shards, which hold parameters
 * and moments, carry it out. All its fields are plain, so sending it as a message keeps it an {@link AdamWSpec}. @see
 * Loshchilov and Hutter 2019, https://arxiv.org/abs/1711.05101
 */
export class AdamW extends AdamLike implements AdamWSpec {
  readonly kind = "adamw";

  constructor(parameters: NamedShapes, options: AdamWOptions = {}) {
    super(parameters, options, adamWDefaults);
  }
}

/**
 * Adam with decay added to the gradient (L2), by the formulas of torch.optim.Adam; weightDecay 0.
 * @see Kingma and Ba 2015, https://arxiv.org/abs/1412.6980
 */
export class Adam extends AdamLike implements AdamSpec {
  readonly kind = "adam";

  constructor(parameters: NamedShapes, options: AdamOptions = {}) {
    super(parameters, options, adamDefaults);
  }
}

/**
 * BMTrain's Adam, of which there are two behind one name: `half`, its kernels for float16 and bfloat16 parameters, with
 * decoupled decay, and `single`, its path for float32 ones, with decay added to the gradient. Here the name says which,
 * whatever the precision. State is kept unscaled in float32; the first `holdSteps` updates are held in both. Every
 * parameter decays, as in BMTrain, unless `decay` says otherwise.
 */
export class BMTrainAdam extends AdamLike implements AdamSpec {
  readonly kind: "bmtrain-adam" | "adam";
  readonly holdSteps: number;

  constructor(parameters: NamedShapes, form: "half" | "single", options: BMTrainAdamOptions = {}) {
    super(parameters, options, bmtrainDefaults);
    if (form !== "half" && form !== "single") throw optionError("form", "half or single", form);
    this.kind = form === "half" ? "bmtrain-adam" : "adam";
    this.holdSteps = atLeastZero("holdSteps", options.holdSteps ?? bmtrainDefaults.holdSteps);
  }
}

const kernels = {
  adamw: ops.troupe.adamw_,
  adam: ops.troupe.adam_,
  "bmtrain-adam": ops.troupe.bmtrainAdam_,
} as const;

/** Adam in its three forms: the state is both moments. */
export const adam: OptimizerKind<AdamSpec> = {
  rule: (spec) => {
    const { kind, betas, eps, holdSteps = 0 } = spec;
    const kinds = ["exp_avg", "exp_avg_sq"];
    return fusedRule(spec, kinds, (stretch, { ends, learningRates, weightDecays }, step) => {
      const isHeld = step.updateIndex <= holdSteps;
      // biome-ignore format: the arguments of a kernel
      kernels[kind](
        stretch.master, stateTensor(stretch, "exp_avg"), stateTensor(stretch, "exp_avg_sq"),
        stretch.gradient, stretch.lowPrecision, ends, isHeld ? learningRates.map(() => 0) : learningRates,
        weightDecays, betas[0], betas[1], eps, step.updateIndex, step.gradientScale, step.scale,
      );
    });
  },
  reference(spec, update) {
    const { value, gradient, weightDecay } = update;
    const lr = update.step <= (spec.holdSteps ?? 0) ? 0 : update.lr;
    if (spec.kind === "adam") value.sub_(adamDirection(update, gradient.add(value, weightDecay), spec), lr);
    else value.mul_(1 - lr * weightDecay).sub_(adamDirection(update, gradient, spec), lr);
  },
};

/** Moves both moments towards the gradient. @returns Adam's direction, both corrected for their start at zero */
export function adamDirection(
  update: LocalUpdate,
  gradient: Tensor,
  { betas: [beta1, beta2], eps }: { readonly betas: readonly [number, number]; readonly eps: number },
): Tensor {
  const expAvg = kept(update, "exp_avg");
  const expAvgSq = kept(update, "exp_avg_sq");
  expAvg.mul_(beta1).add_(gradient, 1 - beta1);
  expAvgSq.mul_(beta2).addcmul_(gradient, gradient, 1 - beta2);
  const root = expAvgSq.div(1 - beta2 ** update.step).sqrt();
  return expAvg.div(1 - beta1 ** update.step).div(root.add(eps));
}
