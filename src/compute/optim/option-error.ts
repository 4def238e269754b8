import { optionErrors, TroupeError, unknownNames } from "../../errors/index.ts";

/** Refuses unknown options. @throws {TroupeError} `OPTIMIZER_OPTION` */
export function refuseUnknown(given: object, names: Readonly<Record<string, unknown>>): void {
  const unknown = unknownNames(given, names);
  if (unknown === undefined) return;
  const { expected, got, hint } = unknown;
  throw new TroupeError("OPTIMIZER_OPTION", { where: "optim", expected, got, hint, fields: { option: got } });
}

/** The error for an option of an optimizer or a schedule that is out of range. */
export const optionError = optionErrors("OPTIMIZER_OPTION", "optim");
