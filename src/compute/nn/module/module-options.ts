import { type NamesOf, TroupeError, unknownNames } from "../../../errors/index.ts";

/**
 * Refuses what no option of a module is called, which would train another model than was meant without a word.
 * @param module - of which class
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
