import { atLeastZero, decayRate } from "./checks.ts";
import { optionError } from "./option-error.ts";
import type { NamedShapes } from "./parameter-groups.ts";
import { CommonOptimizer, type Defaults, type OptimizerOptions } from "./parameter-options.ts";

/** Options of {@link Adafactor}; the defaults of fairseq and transformers. */
export interface AdafactorOptions extends OptimizerOptions {
  /** With `relativeStep` a factor on it. Default: 1. Else the learning rate itself, which must be given. */
  readonly lr?: number;
  /** Added to the squared gradient, and the least root mean square of a parameter. Default: [1e-30, 1e-3]. */
  readonly eps?: readonly [number, number];
  /** Largest root mean square of an update before the learning rate. Default: 1. */
  readonly clipThreshold?: number;
  /** The second moment of step t keeps 1 - t ** decayRate. Default: -0.8. */
  readonly decayRate?: number;
  /** Decay of a first moment. Default: none is kept. */
  readonly beta1?: number;
  /** Multiplies the learning rate by the parameter's root mean square. Default: true. */
  readonly scaleParameter?: boolean;
  /** The learning rate of step t is min(1e-2, 1 / √t). Default: true unless `lr` is given. */
  readonly relativeStep?: boolean;
  /** With `relativeStep`: min(1e-6 · t, 1 / √t) instead. Default: false. */
  readonly warmupInit?: boolean;
}

const defaults = {
  lr: 1,
  weightDecay: 0,
  decay: "every parameter",
  eps: [1e-30, 1e-3],
  clipThreshold: 1,
  decayRate: -0.8,
  beta1: undefined,
  scaleParameter: true,
  relativeStep: undefined,
  warmupInit: false,
} as const satisfies Defaults<AdafactorOptions>;

/**
 * Adafactor as fairseq and transformers have it: of a matrix's second moment only the means over rows and columns are
 * kept (of more dims, over the last two), updates are clipped by their root mean square, and the step is relative to the
 * size of the parameter. A job that gives `lr` has that learning rate, as with `relative_step=False`.
 * @see Shazeer and Stern 2018, https://arxiv.org/abs/1804.04235
 */
export class Adafactor extends CommonOptimizer {
  readonly kind = "adafactor";
  readonly eps: readonly [number, number];
  readonly clipThreshold: number;
  readonly decayRate: number;
  readonly beta1: number | undefined;
  readonly scaleParameter: boolean;
  readonly relativeStep: boolean;
  readonly warmupInit: boolean;

  /**
   * @param parameters - names with shapes: `module.namedParameters()`
   * @throws `OPTIMIZER_OPTION` for an option out of range, warm-up without relative steps, or neither of them nor `lr`
   */
  constructor(parameters: NamedShapes, options: AdafactorOptions = {}) {
    super(parameters, options, defaults);
    const [eps1, eps2] = options.eps ?? defaults.eps;
    this.eps = [atLeastZero("eps", eps1), atLeastZero("eps", eps2)];
    this.clipThreshold = atLeastZero("clipThreshold", options.clipThreshold ?? defaults.clipThreshold);
    this.decayRate = options.decayRate ?? defaults.decayRate;
    this.beta1 = options.beta1 === undefined ? undefined : decayRate("beta1", options.beta1);
    this.scaleParameter = options.scaleParameter ?? defaults.scaleParameter;
    this.relativeStep = options.relativeStep ?? options.lr === undefined;
    this.warmupInit = options.warmupInit ?? defaults.warmupInit;
    if (!(this.clipThreshold > 0)) throw optionError("clipThreshold", "> 0", this.clipThreshold);
    if (!(this.decayRate < 0)) throw optionError("decayRate", "< 0", this.decayRate);
    if (!this.relativeStep && options.lr === undefined)
      throw optionError("lr", "given without relativeStep", "none");
    if (this.warmupInit && !this.relativeStep)
      throw optionError("warmupInit", "used with relativeStep", this.warmupInit);
  }
}

/** {@link Adafactor} as plain data. */
export type AdafactorSpec = Adafactor;

/** @returns Adafactor's step relative to the parameter, before the learning rate's factor */
export function relativeStepOf({ relativeStep, warmupInit }: AdafactorSpec, updateIndex: number): number {
  if (!relativeStep) return 1;
  return Math.min(warmupInit ? 1e-6 * updateIndex : 1e-2, 1 / Math.sqrt(updateIndex));
}
