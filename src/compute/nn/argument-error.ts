import { TroupeError } from "../../errors/index.ts";

/** The error for an argument of a module or of one of its functions. @param fields - the values involved */
export function argumentError(
  where: string,
  expected: string,
  got: unknown,
  fields: Readonly<Record<string, unknown>> = { got },
): TroupeError {
  return new TroupeError("MODULE_ARGUMENT", { where, expected, got: `${got}`, fields });
}
