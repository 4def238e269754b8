import { TroupeError } from "../errors.ts";

/** The error for an option that is out of range. */
export function optionError(option: string, expected: string, got: unknown, hint = ""): TroupeError {
  const advice = hint === "" ? "" : ` (${hint})`;
  return new TroupeError("OPTION", `[options] expected ${option} to be ${expected}: got ${got}${advice}`, {
    fields: { option, got },
  });
}
