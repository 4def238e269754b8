import { type NamesOf, TroupeError, unknownNames } from "../../../errors/index.ts";

/**
 * Refuses unknown options of a module, which would otherwise silently train another model than intended.
 * @param module - the module, whose class the error names
 * @throws {TroupeError} `MODULE_ARGUMENT`
 */
export function refuseUnknownOptions<Options extends object>(
  module: object,
  given: Options,
  names: NamesOf<Options>,
): void {
  const unknown = unknownNames(given, names);
  if (unknown === undefined) return;
  throw new TroupeError("MODULE_ARGUMENT", { where: module.constructor.name, ...unknown });
}
