import { initialLossScale, type LossScaleRule, type LossScaleState, nextLossScale } from "./loss-scale.ts";

/**
 * How far the optimizer has come. It is behind the steps by those that were skipped, and with it the learning rate and
 * Adam's bias corrections. Plain data; part of a checkpoint.
 */
export interface OptimizerProgress {
  /** Updates made so far. */
  readonly numUpdates: number;
  /** Of the next step; none where the loss is not scaled. */
  readonly lossScale?: LossScaleState;
}

/** How far the optimizer has come, and with which parameters not as far. Plain data; what a checkpoint keeps of it. */
export interface SavedProgress extends OptimizerProgress {
  /** By name of a parameter, the updates that were made while it was frozen; left out where that is none. */
  readonly frozenUpdates?: Readonly<Record<string, number>>;
}

/** @returns the updates that one parameter has seen: those that were made while it was trainable */
export function updatesOf(progress: SavedProgress | undefined, name: string): number {
  return (progress?.numUpdates ?? 0) - (progress?.frozenUpdates?.[name] ?? 0);
}

/**
 * @param before - what a checkpoint says; its loss scale is taken up where the run scales at all
 * @returns where the optimizer begins
 */
export function beginProgress(
  before: OptimizerProgress | undefined,
  rule: LossScaleRule | undefined,
): OptimizerProgress {
  const numUpdates = before?.numUpdates ?? 0;
  if (rule === undefined) return { numUpdates };
  const initial = initialLossScale(rule);
  return { numUpdates, lossScale: rule.kind === "static" ? initial : (before?.lossScale ?? initial) };
}

/** @returns where the optimizer stands after one more step */
export function advanceProgress(
  { numUpdates, lossScale }: OptimizerProgress,
  rule: LossScaleRule | undefined,
  overflowed: boolean,
): OptimizerProgress {
  const next = overflowed ? numUpdates : numUpdates + 1;
  if (rule === undefined || lossScale === undefined) return { numUpdates: next };
  return { numUpdates: next, lossScale: nextLossScale(rule, lossScale, overflowed) };
}
