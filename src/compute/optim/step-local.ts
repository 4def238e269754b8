import { noGrad, scope, type Tensor } from "../tensor/index.ts";
import { type ClipRule, clipGradNorm } from "./clip.ts";
import type { LocalState, LocalUpdate } from "./local-updates.ts";
import { kindOf, nameOf, type OptimizerSpec } from "./optimizer.ts";
import { optionError } from "./option-error.ts";

/** Options of one local step. */
export interface StepLocalOptions {
  /** Learning rate of this step. Default: the spec's. */
  readonly lr?: number;
  /**
   * Global L2 norm to which gradients are clipped, or another rule, unless the optimizer has a norm of its own for those of its
   * parameters. Default: Infinity.
   */
  readonly clipNorm?: number | ClipRule;
}

/**
 * One optimizer step on one device in plain tensor operations: the slow, readable reference for the fused kernels and
 * the sharded update. Takes the gradients from `.grad` and zeroes them; parameters without one stay as they are.
 * @param parameters - bound parameters by name: `module.namedParameters()`
 * @param state - filled at the first step; see {@link releaseState}
 * @param step - counted from 1
 * @returns the norm before clipping of the gradients that are clipped together
 */
export function stepLocal(
  parameters: ReadonlyMap<string, { readonly tensor: Tensor }>,
  spec: OptimizerSpec,
  state: LocalState,
  step: number,
  options: StepLocalOptions = {},
): number {
  const { reference } = kindOf(spec);
  if (reference === undefined)
    throw optionError(
      "optimizer",
      "one of this package for a local step, whose formulas it knows",
      nameOf(spec),
    );
  return noGrad(() =>
    scope(() => {
      const gradients = gradientsOf(parameters);
      const norm = clipped(gradients, spec, options);
      for (const { names, lrFactor, weightDecay } of spec.groups) {
        const lr = (options.lr ?? spec.lr) * lrFactor;
        for (const name of names) {
          const value = parameters.get(name)?.tensor;
          const gradient = gradients.get(name);
          if (value === undefined || gradient === undefined) continue;
          const update: LocalUpdate = { name, value, gradient, state, lr, weightDecay, step };
          scope(() => reference(spec, spec.maximize ? { ...update, gradient: gradient.neg() } : update));
          gradient.zero_();
        }
      }
      return norm;
    }),
  );
}

/** Clips gradients as a run does: an optimizer with a norm of its own those of its parameters. @returns their norm before */
function clipped(
  gradients: ReadonlyMap<string, Tensor>,
  { clipNorm, groups }: OptimizerSpec,
  options: StepLocalOptions,
): number {
  if (clipNorm === undefined)
    return clipGradNorm([...gradients.values()], options.clipNorm ?? Number.POSITIVE_INFINITY);
  const own = groups.flatMap(({ names }) => names.flatMap((name) => gradients.get(name) ?? []));
  return clipGradNorm(own, clipNorm);
}

/** Releases the state that {@link stepLocal} keeps between steps. */
export function releaseState(state: LocalState): void {
  for (const kept of state.values()) for (const tensor of Object.values(kept)) tensor.dispose();
  state.clear();
}

function gradientsOf(parameters: ReadonlyMap<string, { readonly tensor: Tensor }>): Map<string, Tensor> {
  const gradients = new Map<string, Tensor>();
  for (const [name, { tensor }] of parameters) {
    const gradient = tensor.grad;
    if (gradient) gradients.set(name, gradient);
  }
  return gradients;
}
