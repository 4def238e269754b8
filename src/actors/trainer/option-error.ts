import { TroupeError } from "../../errors/index.ts";

/** The error for an option that is out of range. */
export function optionError(option: string, expected: string, got: unknown, hint?: string): TroupeError {
  return new TroupeError("OPTION", {
    where: "options",
    expected: `${option} to be ${expected}`,
    got: `${got}`,
    hint,
    fields: { option, got },
  });
}
