import { type NamesOf, TroupeError, unknownNames } from "../errors.ts";

/**
 * Refuses what no option is called.
 * @param where - these options are given
 * @throws {TroupeError} `OPTION`
 */
export function refuseUnknown<Options extends object>(
  where: string,
  given: Options,
  names: NamesOf<Options>,
): void {
  const unknown = unknownNames(given, names);
  if (unknown !== undefined) throw optionError(where, unknown.expected, unknown.got);
}

/** The error for an option that is out of range. */
export function optionError(option: string, expected: string, got: unknown, hint = ""): TroupeError {
  const advice = hint === "" ? "" : ` (${hint})`;
  return new TroupeError("OPTION", `[options] expected ${option} to be ${expected}: got ${got}${advice}`, {
    fields: { option, got },
  });
}
