import { type NamesOf, TroupeError, unknownNames } from "../errors.ts";

/**
 * Refuses what no option is called.
 * @param subject - whose names these are, as in "an option of the job's training"
 * @throws {TroupeError} `OPTION`
 */
export function refuseUnknown<Options extends object>(
  subject: string,
  given: Options,
  names: NamesOf<Options>,
): void {
  const unknown = unknownNames(given, names, subject);
  if (unknown === undefined) return;
  const { expected, got, hint } = unknown;
  throw new TroupeError(
    "OPTION",
    { where: "options", expected, got, hint },
    {
      fields: { option: subject, got },
    },
  );
}

/** The error for an option that is out of range. */
export function optionError(option: string, expected: string, got: unknown, hint?: string): TroupeError {
  return new TroupeError(
    "OPTION",
    { where: "options", expected: `${option} to be ${expected}`, got: `${got}`, hint },
    {
      fields: { option, got },
    },
  );
}
