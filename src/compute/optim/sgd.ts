import type { NamesOf } from "../../errors/index.ts";
import { ops, scope } from "../tensor/index.ts";
import { atLeastZero } from "./checks.ts";
import { optionError } from "./option-error.ts";
import type { NamedShapes } from "./parameter-groups.ts";
import { CommonOptimizer, type CommonSpec, commonNames, type OptimizerOptions } from "./parameter-options.ts";
import { ALL_PARTS, elementwise, segmentsOf, stateTensor, type UpdateRule } from "./update-rule.ts";

/** Options of {@link SGD}; torch's defaults: lr 1e-3, weightDecay 0. */
export interface SGDOptions extends OptimizerOptions {
  /** 0 */
  readonly momentum?: number;
  /** What is held back of a gradient that enters the momentum, but for the first. 0 */
  readonly dampening?: number;
  /** Looks one step of momentum ahead. false */
  readonly nesterov?: boolean;
}

const NAMES: NamesOf<SGDOptions> = { ...commonNames, momentum: true, dampening: true, nesterov: true };

/** {@link SGD} as plain data. */
export interface SGDSpec extends CommonSpec {
  readonly kind: "sgd";
  readonly momentum: number;
  readonly dampening: number;
  readonly nesterov: boolean;
}

/**
 * Stochastic gradient descent by the formulas of torch.optim.SGD; decay is added to the gradient.
 * @see Sutskever et al. 2013, https://proceedings.mlr.press/v28/sutskever13.html
 */
export class SGD extends CommonOptimizer implements SGDSpec {
  readonly kind = "sgd";
  readonly momentum: number;
  readonly dampening: number;
  readonly nesterov: boolean;

  /**
   * @param parameters - names with shapes: `module.namedParameters()`
   * @throws `OPTIMIZER_OPTION` for an option out of range, or Nesterov's form without momentum or with dampening
   */
  constructor(parameters: NamedShapes, options: SGDOptions = {}) {
    super(parameters, options, { lr: 1e-3, weightDecay: 0, names: NAMES });
    this.momentum = atLeastZero("momentum", options.momentum ?? 0);
    this.dampening = options.dampening ?? 0;
    this.nesterov = options.nesterov ?? false;
    if (!Number.isFinite(this.dampening)) throw optionError("dampening", "a number", this.dampening);
    if (this.nesterov && (this.momentum === 0 || this.dampening !== 0))
      throw optionError("nesterov", "used with momentum and no dampening", true);
  }
}

/** SGD in one pass of the fused kernel; its state is the momentum, where there is one. */
export function sgdRule(spec: SGDSpec): UpdateRule {
  const { groups, momentum, dampening, nesterov, maximize } = spec;
  const kinds = momentum === 0 ? [] : ["momentum_buffer"];
  return {
    groups,
    exchanges: false,
    takesScale: true,
    updatesPartOf: ALL_PARTS,
    stateOf: (stretch) => elementwise(kinds, stretch),
    *update({ stretches }, step) {
      for (const stretch of stretches) {
        const { ends, learningRates, weightDecays } = segmentsOf(stretch, groups, step);
        scope(() => {
          ops.troupe.sgd_(
            stretch.master,
            momentum === 0 ? undefined : stateTensor(stretch, "momentum_buffer"),
            stretch.gradient,
            stretch.lowPrecision,
            ends,
            learningRates,
            weightDecays,
            momentum,
            dampening,
            nesterov,
            step.updateIndex,
            maximize ? -step.gradientScale : step.gradientScale,
            step.scale,
          );
        });
      }
    },
  };
}
