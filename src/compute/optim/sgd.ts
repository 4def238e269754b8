import { ops } from "../tensor/index.ts";
import { atLeastZero } from "./checks.ts";
import { kept } from "./local-updates.ts";
import { optionError } from "./option-error.ts";
import type { NamedShapes } from "./parameter-groups.ts";
import { CommonOptimizer, type Defaults, type OptimizerOptions } from "./parameter-options.ts";
import { fusedRule, type OptimizerKind, stateTensor } from "./update-rule.ts";

/** Options of {@link SGD}; torch's defaults: lr 1e-3, weightDecay 0. */
export interface SGDOptions extends OptimizerOptions {
  /** Default: 0. */
  readonly momentum?: number;
  /** Share of each gradient after the first that is left out of the momentum. Default: 0. */
  readonly dampening?: number;
  /** Looks one step of momentum ahead. Default: false. */
  readonly nesterov?: boolean;
}

const defaults = {
  lr: 1e-3,
  weightDecay: 0,
  momentum: 0,
  dampening: 0,
  nesterov: false,
} as const satisfies Defaults<SGDOptions>;

/**
 * Stochastic gradient descent by the formulas of torch.optim.SGD; decay is added to the gradient.
 * @see Sutskever et al. 2013, https://proceedings.mlr.press/v28/sutskever13.html
 */
export class SGD extends CommonOptimizer {
  readonly kind = "sgd";
  readonly momentum: number;
  readonly dampening: number;
  readonly nesterov: boolean;

  /**
   * @param parameters - names with shapes: `module.namedParameters()`
   * @throws `OPTIMIZER_OPTION` for an option out of range, or Nesterov's form without momentum or with dampening
   */
  constructor(parameters: NamedShapes, options: SGDOptions = {}) {
    super(parameters, options, defaults);
    this.momentum = atLeastZero("momentum", options.momentum ?? defaults.momentum);
    this.dampening = options.dampening ?? defaults.dampening;
    this.nesterov = options.nesterov ?? defaults.nesterov;
    if (!Number.isFinite(this.dampening)) throw optionError("dampening", "a number", this.dampening);
    if (this.nesterov && (this.momentum === 0 || this.dampening !== 0))
      throw optionError("nesterov", "used with momentum and no dampening", true);
  }
}

/** {@link SGD} as plain data. */
export type SGDSpec = SGD;

/** SGD: its state is the momentum, if there is one. */
export const sgd: OptimizerKind<SGDSpec> = {
  rule: (spec) => {
    const { momentum, dampening, nesterov } = spec;
    const kinds = momentum === 0 ? [] : ["momentum_buffer"];
    return fusedRule(spec, kinds, (stretch, { ends, learningRates, weightDecays }, step) => {
      // biome-ignore format: the arguments of a kernel
      ops.troupe.sgd_(
        stretch.master, momentum === 0 ? undefined : stateTensor(stretch, "momentum_buffer"),
        stretch.gradient, stretch.lowPrecision, ends, learningRates, weightDecays, momentum, dampening,
        nesterov, step.updateIndex, step.gradientScale, step.scale,
      );
    });
  },
  reference({ momentum, dampening, nesterov }, update) {
    const { value, lr, weightDecay, step } = update;
    const gradient = update.gradient.add(value, weightDecay);
    if (momentum === 0) {
      value.sub_(gradient, lr);
      return;
    }
    const buffer = kept(update, "momentum_buffer");
    buffer.mul_(momentum).add_(gradient, step === 1 ? 1 : 1 - dampening);
    value.sub_(nesterov ? gradient.add(buffer, momentum) : buffer, lr);
  },
};
