import { initialLossScale, type LossScaleRule, type LossScaleState, nextLossScale } from "./loss-scale.ts";

/**
 * The optimizer's progress. It lags the steps by the skipped ones, and with it the learning rate and Adam's bias corrections.
 * Plain data; part of a checkpoint.
 */
export interface OptimizerProgress {
  /** Updates made so far. */
  readonly numUpdates: number;
  /** The next step's; undefined without loss scaling. */
  readonly lossScale?: LossScaleState;
}

/** The optimizer's progress as a checkpoint keeps it: with the lag of frozen parameters. Plain data. */
export interface SavedProgress extends OptimizerProgress {
  /** By name, the number of updates made while a parameter was frozen; no entry for 0. */
  readonly frozenUpdates?: Readonly<Record<string, number>>;
}

/** @returns the number of updates of one parameter: those made while it was trainable */
export function updatesOf(progress: SavedProgress | undefined, name: string): number {
  return (progress?.numUpdates ?? 0) - (progress?.frozenUpdates?.[name] ?? 0);
}

/**
 * @param before - from a checkpoint; its loss scale is kept if the run scales at all
 * @returns the optimizer's progress at the beginning
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

/** @returns the optimizer's progress after one more step */
export function advanceProgress(
  { numUpdates, lossScale }: OptimizerProgress,
  rule: LossScaleRule | undefined,
  overflowed: boolean,
): OptimizerProgress {
  const next = overflowed ? numUpdates : numUpdates + 1;
  if (rule === undefined || lossScale === undefined) return { numUpdates: next };
  return { numUpdates: next, lossScale: nextLossScale(rule, lossScale, overflowed) };
}
