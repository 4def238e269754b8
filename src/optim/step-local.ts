import { keep, noGrad, scope, type Tensor, zeros } from "../tensor/index.ts";
import type { AdamWSpec } from "./adamw.ts";
import { clipGradNorm } from "./clip.ts";

/** First and second moment by parameter name; filled at the first step, released by its owner. */
export type AdamWMoments = Map<string, { readonly expAvg: Tensor; readonly expAvgSq: Tensor }>;

/** What one local step may be told. */
export interface StepLocalOptions {
  /** Learning rate of this step; the spec's unless told otherwise. */
  readonly lr?: number;
  /** Global norm to which gradients are clipped; Infinity unless told otherwise. */
  readonly clipNorm?: number;
}

/**
 * One AdamW step on one device in plain tensor operations: the slow, readable reference for the fused kernel and
 * the sharded update. Takes the gradients from `.grad` and zeroes them; parameters without one stay as they are.
 * @param parameters - bound parameters by name: `module.namedParameters()`
 * @param step - counted from 1
 * @returns the gradient norm before clipping
 */
export function stepLocal(
  parameters: ReadonlyMap<string, { readonly tensor: Tensor }>,
  spec: AdamWSpec,
  moments: AdamWMoments,
  step: number,
  options: StepLocalOptions = {},
): number {
  return noGrad(() =>
    scope(() => {
      const gradients = gradientsOf(parameters);
      const norm = clipGradNorm([...gradients.values()], options.clipNorm ?? Number.POSITIVE_INFINITY);
      for (const { names, lrFactor, weightDecay } of spec.groups) {
        const lr = (options.lr ?? spec.lr) * lrFactor;
        for (const name of names) {
          const value = parameters.get(name)?.tensor;
          const gradient = gradients.get(name);
          if (value && gradient)
            updateOne(name, value, gradient, moments, { ...spec, lr, weightDecay, step });
        }
      }
      return norm;
    }),
  );
}

function gradientsOf(parameters: ReadonlyMap<string, { readonly tensor: Tensor }>): Map<string, Tensor> {
  const gradients = new Map<string, Tensor>();
  for (const [name, { tensor }] of parameters) {
    const gradient = tensor.grad;
    if (gradient) gradients.set(name, gradient);
  }
  return gradients;
}

interface Update {
  readonly lr: number;
  readonly weightDecay: number;
  readonly betas: readonly [number, number];
  readonly eps: number;
  readonly step: number;
}

function updateOne(
  name: string,
  value: Tensor,
  gradient: Tensor,
  moments: AdamWMoments,
  update: Update,
): void {
  const { lr, weightDecay, betas, eps, step } = update;
  const [beta1, beta2] = betas;
  const { expAvg, expAvgSq } = moments.get(name) ?? newMoments(name, value, moments);
  scope(() => {
    value.mul_(1 - lr * weightDecay);
    expAvg.mul_(beta1).add_(gradient, 1 - beta1);
    expAvgSq.mul_(beta2).addcmul_(gradient, gradient, 1 - beta2);
    const root = expAvgSq
      .sqrt()
      .div(Math.sqrt(1 - beta2 ** step))
      .add(eps);
    value.addcdiv_(expAvg, root, -lr / (1 - beta1 ** step));
    gradient.zero_();
  });
}

function newMoments(name: string, value: Tensor, moments: AdamWMoments) {
  const shape = [...value.shape];
  const dtype = value.dtype;
  const fresh = { expAvg: keep(zeros(shape, { dtype })), expAvgSq: keep(zeros(shape, { dtype })) };
  moments.set(name, fresh);
  return fresh;
}
