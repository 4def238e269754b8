import { type NamesOf, refuseUnknown } from "../../../errors/index.ts";
import { argumentError } from "../argument-error.ts";

/**
 * Refuses unknown options of a loss, and reductions that it does not have, which would otherwise be another loss.
 * @param where - the loss
 * @throws {TroupeError} `MODULE_ARGUMENT`
 */
export function checkLossOptions<Options extends { readonly reduction?: string | undefined }>(
  where: string,
  options: Options,
  names: NamesOf<Options>,
  reductions: readonly string[],
): void {
  refuseUnknown("MODULE_ARGUMENT", where, options, names);
  const { reduction = "mean" } = options;
  if (reductions.includes(reduction)) return;
  const others = reductions.slice(0, -1).join(", ");
  throw argumentError(where, `the reduction ${others} or ${reductions.at(-1)}`, reduction);
}
