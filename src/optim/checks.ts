import { optionError } from "./option-error.ts";

/** @throws {TroupeError} `OPTIMIZER_OPTION` unless `value` is a finite number ≥ 0 */
export function atLeastZero(option: string, value: number): number {
  if (value >= 0 && value < Number.POSITIVE_INFINITY) return value;
  throw optionError(option, "≥ 0", value);
}

/** @throws {TroupeError} `OPTIMIZER_OPTION` unless `value` is in [0, 1) */
export function decayRate(option: string, value: number): number {
  if (value >= 0 && value < 1) return value;
  throw optionError(option, "in [0, 1)", value);
}

/** @throws {TroupeError} `OPTIMIZER_OPTION` unless both are in [0, 1) */
export function checkBetas(betas: readonly [number, number]): readonly [number, number] {
  for (const beta of betas) if (!(beta >= 0 && beta < 1)) throw optionError("betas", "in [0, 1)", betas);
  return betas;
}
