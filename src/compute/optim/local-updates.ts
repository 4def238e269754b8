import { keep, type Tensor, zeros } from "../tensor/index.ts";

/** An optimizer's state, by parameter and then by kind, in the dtype of the parameter. */
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

/** The state of one kind: zeros of `shape` at the first step. */
export function kept(
  { state, name, value }: LocalUpdate,
  kind: string,
  shape: readonly number[] = value.shape,
): Tensor {
  const ofParameter = state.get(name) ?? {};
  state.set(name, ofParameter);
  ofParameter[kind] ??= keep(zeros([...shape], { dtype: value.dtype }));
  return ofParameter[kind];
}

/** L2 norm, summed in float64. */
export function norm(values: Tensor): number {
  return Math.sqrt(values.to("float64").square().sum().item());
}

export function rootMeanSquare(values: Tensor): number {
  return norm(values) / Math.sqrt(values.numel);
}
