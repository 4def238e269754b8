import { ops } from "../tensor/index.ts";
import { checkBetas } from "./checks.ts";
import { kept } from "./local-updates.ts";
import type { NamedShapes } from "./parameter-groups.ts";
import { CommonOptimizer, type Defaults, type OptimizerOptions } from "./parameter-options.ts";
import { fusedRule, type OptimizerKind, stateTensor } from "./update-rule.ts";

/** Options of {@link Lion}; the paper's defaults: lr 1e-4, weightDecay 0. */
export interface LionOptions extends OptimizerOptions {
  /** Decay of the interpolation whose sign is taken, and of the momentum that is kept. Default: [0.9, 0.99]. */
  readonly betas?: readonly [number, number];
}

const defaults = { lr: 1e-4, weightDecay: 0, betas: [0.9, 0.99] } as const satisfies Defaults<LionOptions>;

/**
 * Lion: every element moves by the learning rate, in the direction of the sign of an interpolated momentum; decoupled
 * decay. Half of Adam's state.
 * @see Chen et al. 2023, https://arxiv.org/abs/2302.06675
 */
export class Lion extends CommonOptimizer {
  readonly kind = "lion";
  readonly betas: readonly [number, number];

  /**
   * @param parameters - names with shapes: `module.namedParameters()`
   * @throws `OPTIMIZER_OPTION` for an option out of range
   */
  constructor(parameters: NamedShapes, options: LionOptions = {}) {
    super(parameters, options, defaults);
    this.betas = checkBetas(options.betas ?? defaults.betas);
  }
}

/** {@link Lion} as plain data. */
export type LionSpec = Lion;

/** Lion: its state is the momentum. */
export const lion: OptimizerKind<LionSpec> = {
  rule: (spec) => {
    const { betas } = spec;
    return fusedRule(spec, ["exp_avg"], (stretch, { ends, learningRates, weightDecays }, step) => {
      // biome-ignore format: the arguments of a kernel
      ops.troupe.lion_(
        stretch.master, stateTensor(stretch, "exp_avg"), stretch.gradient, stretch.lowPrecision, ends,
        learningRates, weightDecays, betas[0], betas[1], step.gradientScale, step.scale,
      );
    });
  },
  reference({ betas: [beta1, beta2] }, update) {
    const { value, gradient, lr, weightDecay } = update;
    const expAvg = kept(update, "exp_avg");
    const direction = expAvg
      .mul(beta1)
      .add(gradient, 1 - beta1)
      .sign();
    value.mul_(1 - lr * weightDecay).sub_(direction, lr);
    expAvg.mul_(beta2).add_(gradient, 1 - beta2);
  },
};
