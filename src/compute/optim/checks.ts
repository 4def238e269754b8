import { optionError } from "./option-error.ts";

/** @throws {TroupeError} `OPTIMIZER_OPTION` unless `value` is a finite number ≥ 0 */
export function atLeastZero(option: string, value: number): number {
  if (Number.isFinite(value) && value >= 0) return value;
  throw optionError(option, "a number ≥ 0", shown(value));
}

/** @throws {TroupeError} `OPTIMIZER_OPTION` unless `value` is in [0, 1) */
export function decayRate(option: string, value: number): number {
  if (isDecayRate(value)) return value;
  throw optionError(option, "a number in [0, 1)", shown(value));
}

/** @throws {TroupeError} `OPTIMIZER_OPTION` unless both are in [0, 1) */
export function checkBetas(betas: readonly [number, number]): readonly [number, number] {
  if (Array.isArray(betas) && betas.length === 2 && betas.every(isDecayRate)) return betas;
  throw optionError("betas", "two numbers in [0, 1)", shown(betas));
}

function isDecayRate(value: unknown): value is number {
  return typeof value === "number" && value >= 0 && value < 1;
}

/** A text in quotes: "0.1" is no number. */
function shown(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(shown).join(", ")}]`;
  return typeof value === "string" ? JSON.stringify(value) : String(value);
}
