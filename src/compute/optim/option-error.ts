import * as errors from "../../errors/index.ts";

/** Refuses unknown options. @throws {TroupeError} `OPTIMIZER_OPTION` */
export function refuseUnknown(given: object, names: Readonly<Record<string, unknown>>): void {
  errors.refuseUnknown("OPTIMIZER_OPTION", "optim", given, names);
}

/** The error for an option of an optimizer or a schedule that is out of range. */
export const optionError = errors.optionErrors("OPTIMIZER_OPTION", "optim");
