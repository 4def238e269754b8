import { type NamesOf, refuseUnknown } from "../../../errors/index.ts";

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
  refuseUnknown("MODULE_ARGUMENT", module.constructor.name, given, names);
}
