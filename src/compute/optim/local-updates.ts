import { keep, type Tensor, zeros } from "../tensor/index.ts";
import { type AdafactorSpec, relativeStepOf } from "./adafactor.ts";
import type { AdamSpec } from "./adam.ts";
import { type LAMBSpec, trustRatio } from "./lamb.ts";
import type { LionSpec } from "./lion.ts";
import type { OptimizerSpec } from "./optimizer.ts";
import { optionError } from "./option-error.ts";
import type { SGDSpec } from "./sgd.ts";

/** What an optimizer keeps, by parameter and then by kind, in the dtype of the parameter. */
export type LocalState = Map<string, Record<string, Tensor>>;

/** One parameter's part of one step. */
export interface LocalUpdate {
  readonly name: string;
  readonly value: Tensor;
  readonly gradient: Tensor;
  readonly state: LocalState;
  readonly lr: number;
  readonly weightDecay: number;
  /** Counted from 1. */
  readonly step: number;
}

/** Updates one parameter in place by the formulas of its optimizer. Temporaries are the caller's scope's. */
export function updateLocal(spec: OptimizerSpec, update: LocalUpdate): void {
  switch (spec.kind) {
    case "adamw":
    case "adam":
    case "bmtrain-adam":
      adam(spec, update);
      break;
    case "sgd":
      sgd(spec, update);
      break;
    case "lion":
      lion(spec, update);
      break;
    case "lamb":
      lamb(spec, update);
      break;
    case "adafactor":
      adafactor(spec, update);
      break;
    case "own":
      throw optionError(
        "optimizer",
        "one of this package for a local step, whose formulas it knows",
        spec.name,
      );
    default:
      spec satisfies never;
  }
}

/** The state of one kind: zeros of `shape` at the first step. */
function kept(
  { state, name, value }: LocalUpdate,
  kind: string,
  shape: readonly number[] = value.shape,
): Tensor {
  const ofParameter = state.get(name) ?? {};
  state.set(name, ofParameter);
  ofParameter[kind] ??= keep(zeros([...shape], { dtype: value.dtype }));
  return ofParameter[kind];
}

/** Moves both moments towards the gradient. @returns Adam's direction, both corrected for their start at zero */
function adamDirection(
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

function adam(spec: AdamSpec, update: LocalUpdate): void {
  const { value, gradient, weightDecay } = update;
  const lr = update.step <= (spec.holdSteps ?? 0) ? 0 : update.lr;
  if (spec.kind === "adam") {
    value.sub_(adamDirection(update, gradient.add(value, weightDecay), spec), lr);
  } else {
    value.mul_(1 - lr * weightDecay).sub_(adamDirection(update, gradient, spec), lr);
  }
}

function sgd({ momentum, dampening, nesterov }: SGDSpec, update: LocalUpdate): void {
  const { value, lr, weightDecay, step } = update;
  const gradient = update.gradient.add(value, weightDecay);
  if (momentum === 0) {
    value.sub_(gradient, lr);
    return;
  }
  const buffer = kept(update, "momentum_buffer");
  buffer.mul_(momentum).add_(gradient, step === 1 ? 1 : 1 - dampening);
  value.sub_(nesterov ? gradient.add(buffer, momentum) : buffer, lr);
}

function lion({ betas: [beta1, beta2] }: LionSpec, update: LocalUpdate): void {
  const { value, gradient, lr, weightDecay } = update;
  const expAvg = kept(update, "exp_avg");
  const direction = expAvg
    .mul(beta1)
    .add(gradient, 1 - beta1)
    .sign();
  value.mul_(1 - lr * weightDecay).sub_(direction, lr);
  expAvg.mul_(beta2).add_(gradient, 1 - beta2);
}

function lamb(spec: LAMBSpec, update: LocalUpdate): void {
  const { value, gradient, lr, weightDecay } = update;
  const direction = adamDirection(update, gradient, spec).add(value, weightDecay);
  value.sub_(direction, lr * trustRatio(norm(value), norm(direction)));
}

function adafactor(spec: AdafactorSpec, update: LocalUpdate): void {
  const { value, gradient, weightDecay, step } = update;
  const beta2 = 1 - step ** spec.decayRate;
  const squares = gradient.square().add(spec.eps[0]);
  const towards = (state: Tensor, mean: Tensor) => state.mul_(beta2).add_(mean, 1 - beta2);
  const { shape } = value;
  let direction: Tensor;
  if (shape.length < 2) {
    direction = gradient.div(towards(kept(update, "exp_avg_sq"), squares).sqrt());
  } else {
    const columnShape = [...shape.slice(0, -2), ...shape.slice(-1)];
    const rows = towards(kept(update, "exp_avg_sq_row", shape.slice(0, -1)), squares.mean([-1]));
    const columns = towards(kept(update, "exp_avg_sq_col", columnShape), squares.mean([-2]));
    const ofRows = rows
      .div(rows.mean([-1], true))
      .rsqrt()
      .unsqueeze(-1);
    direction = ofRows.mul(columns.unsqueeze(-2).rsqrt()).mul(gradient);
  }
  const size = spec.scaleParameter ? Math.max(spec.eps[1], rootMeanSquare(value)) : 1;
  const lr = update.lr * relativeStepOf(spec, step) * size;
  direction = direction.mul(lr / Math.max(1, rootMeanSquare(direction) / spec.clipThreshold));
  if (spec.beta1 !== undefined) {
    direction = kept(update, "exp_avg")
      .mul_(spec.beta1)
      .add_(direction, 1 - spec.beta1);
  }
  value.mul_(1 - lr * weightDecay).sub_(direction);
}

function norm(values: Tensor): number {
  return Math.sqrt(values.to("float64").square().sum().item());
}

function rootMeanSquare(values: Tensor): number {
  return norm(values) / Math.sqrt(values.numel);
}
