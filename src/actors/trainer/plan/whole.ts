import { optionError } from "../option-error.ts";

/**
 * Checks a whole number.
 * @throws {TroupeError} `OPTION` unless `value` is a whole number from `lowest` to `highest`
 */
export function whole(
  option: string,
  value: number,
  lowest: number,
  highest = Number.MAX_SAFE_INTEGER,
): number {
  if (Number.isSafeInteger(value) && value >= lowest && value <= highest) return value;
  const range = highest === Number.MAX_SAFE_INTEGER ? `≥ ${lowest}` : `from ${lowest} to ${highest}`;
  throw optionError(option, `a whole number ${range}`, value);
}
