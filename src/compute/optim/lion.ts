import type { NamesOf } from "../../errors/index.ts";
import { ops, scope } from "../tensor/index.ts";
import { checkBetas } from "./checks.ts";
import type { NamedShapes } from "./parameter-groups.ts";
import { CommonOptimizer, type CommonSpec, commonNames, type OptimizerOptions } from "./parameter-options.ts";
import { ALL_PARTS, elementwise, segmentsOf, stateTensor, type UpdateRule } from "./update-rule.ts";

/** Options of {@link Lion}; the paper's defaults: lr 1e-4, weightDecay 0. */
export interface LionOptions extends OptimizerOptions {
  /** Of the interpolation whose sign is taken, and of the momentum that is kept. [0.9, 0.99] */
  readonly betas?: readonly [number, number];
}

const NAMES: NamesOf<LionOptions> = { ...commonNames, betas: true };

/** {@link Lion} as plain data. */
export interface LionSpec extends CommonSpec {
  readonly kind: "lion";
  readonly betas: readonly [number, number];
}

/**
 * Lion: every element moves by the learning rate, in the direction of the sign of an interpolated momentum; decoupled
 * decay. Half of Adam's state.
 * @see Chen et al. 2023, https://arxiv.org/abs/2302.06675
 */
export class Lion extends CommonOptimizer implements LionSpec {
  readonly kind = "lion";
  readonly betas: readonly [number, number];

  /**
   * @param parameters - names with shapes: `module.namedParameters()`
   * @throws `OPTIMIZER_OPTION` for an option out of range
   */
  constructor(parameters: NamedShapes, options: LionOptions = {}) {
    super(parameters, options, { lr: 1e-4, weightDecay: 0, names: NAMES });
    this.betas = checkBetas(options.betas ?? [0.9, 0.99]);
  }
}

/** Lion in one pass of the fused kernel. */
export function lionRule(spec: LionSpec): UpdateRule {
  const { groups, betas, maximize } = spec;
  return {
    groups,
    exchanges: false,
    takesScale: true,
    updatesPartOf: ALL_PARTS,
    stateOf: (stretch) => elementwise(["exp_avg"], stretch),
    *update({ stretches }, step) {
      for (const stretch of stretches) {
        const { ends, learningRates, weightDecays } = segmentsOf(stretch, groups, step);
        scope(() => {
          ops.troupe.lion_(
            stretch.master,
            stateTensor(stretch, "exp_avg"),
            stretch.gradient,
            stretch.lowPrecision,
            ends,
            learningRates,
            weightDecays,
            betas[0],
            betas[1],
            maximize ? -step.gradientScale : step.gradientScale,
            step.scale,
          );
        });
      }
    },
  };
}
