import { TroupeError } from "../../errors/index.ts";

/** The error for a model that does not fit a format, or cannot be read or written. */
export function convertError(
  expected: string,
  got: string,
  hint: string,
  fields: Readonly<Record<string, unknown>>,
): TroupeError {
  return new TroupeError("CONVERT", { where: "convert", expected, got, hint, fields });
}

/** The error for tensors that only one of two models has. @param expected - those that both have */
export function unsharedNames(expected: string, names: readonly string[]): TroupeError {
  const shown = names.slice(0, 4).join(", ");
  const got = names.length > 4 ? `${shown}, and ${names.length - 4} more` : shown;
  const hint = "does config.json describe this model, its head among its architectures?";
  return convertError(expected, got, hint, { names });
}
