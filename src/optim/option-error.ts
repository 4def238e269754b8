import { TroupeError } from "../errors.ts";

/** The error for an option of an optimizer or a schedule that is out of range. */
export function optionError(option: string, expected: string, got: unknown): TroupeError {
  return new TroupeError("OPTIMIZER_OPTION", `[optim] ${option} must be ${expected}: ${got}`, {
    fields: { option, got },
  });
}
