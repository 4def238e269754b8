import { optionError } from "./option-error.ts";
import {
  type Decay,
  type GroupRule,
  groupParameters,
  type NamedShapes,
  type ParameterGroup,
} from "./parameter-groups.ts";

/** What AdamW may be told; torch's defaults. */
export interface AdamWOptions {
  /** Peak learning rate; a schedule sets that of each step. 1e-3 */
  readonly lr?: number;
  /** Decay of the first and second moment. [0.9, 0.999] */
  readonly betas?: readonly [number, number];
  /** Added to the root of the second moment. 1e-8 */
  readonly eps?: number;
  /** Decoupled weight decay. 0.01 */
  readonly weightDecay?: number;
  /** What decays: "matrices" */
  readonly decay?: Decay;
  /** Exceptions by name or shape. */
  readonly groups?: readonly GroupRule[];
}

/** AdamW as plain data: what a shard, which holds the parameters and the moments, needs to update its slice. */
export interface AdamWSpec {
  readonly kind: "adamw";
  readonly lr: number;
  readonly betas: readonly [number, number];
  readonly eps: number;
  readonly groups: readonly ParameterGroup[];
}

/**
 * Adam with decoupled weight decay, by the formulas of torch.optim.AdamW. It holds no tensors: it says what is to be
 * done, and the shards, where parameters and moments live, do it. All its fields are plain, so sending it as a
 * message keeps it an {@link AdamWSpec}.
 * @see Loshchilov and Hutter 2019, https://arxiv.org/abs/1711.05101
 */
export class AdamW implements AdamWSpec {
  readonly kind = "adamw";
  readonly lr: number;
  readonly betas: readonly [number, number];
  readonly eps: number;
  readonly groups: readonly ParameterGroup[];

  /**
   * @param parameters - names with shapes: `module.namedParameters()`
   * @throws `OPTIMIZER_OPTION` for an option out of range
   */
  constructor(parameters: NamedShapes, options: AdamWOptions = {}) {
    const { lr = 1e-3, betas = [0.9, 0.999], eps = 1e-8, weightDecay = 0.01 } = options;
    if (!(lr >= 0 && lr < Infinity)) throw optionError("lr", "≥ 0", lr);
    for (const beta of betas) if (!(beta >= 0 && beta < 1)) throw optionError("betas", "in [0, 1)", betas);
    if (!(eps >= 0 && eps < Infinity)) throw optionError("eps", "≥ 0", eps);
    if (!(weightDecay >= 0 && weightDecay < Infinity)) throw optionError("weightDecay", "≥ 0", weightDecay);
    this.lr = lr;
    this.betas = betas;
    this.eps = eps;
    this.groups = groupParameters(parameters, {
      weightDecay,
      decay: options.decay ?? "matrices",
      rules: options.groups ?? [],
    });
  }
}
