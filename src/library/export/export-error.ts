import { TroupeError } from "../../errors/index.ts";

/** @param module - name of the module that cannot be exported; empty for the model itself */
export function exportError(
  expected: string,
  got: string,
  { module, hint }: { readonly module?: string; readonly hint?: string } = {},
): TroupeError {
  return new TroupeError("EXPORT", {
    where: "export",
    expected,
    got: module ? `${got} in module ${module}` : got,
    hint,
    fields: module === undefined ? {} : { module },
  });
}
