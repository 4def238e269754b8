import { fileErrors, fileFailure, TroupeError } from "../../../errors/index.ts";
import { maxFileBytes, readBoundedText } from "../../../errors/untrusted/index.ts";
import { noteFile } from "../noted-files.ts";

/** The error for an invalid example. @param place - file and line, or another name of the example */
export function exampleError(place: string, expected: string, got: unknown, hint?: string): TroupeError {
  return new TroupeError("DATA_EXAMPLE", {
    where: "data",
    expected: `${expected} at ${place}`,
    got: `${got}`,
    hint,
    fields: { place, expected, got },
  });
}

/** The error for a file that cannot be opened or read. */
export function unreadable(path: string, cause: unknown): TroupeError {
  const { code } = cause as NodeJS.ErrnoException;
  const refuse = fileErrors(code === "ENOENT" ? "DATA_MISSING" : "DATA_UNREADABLE", "data", undefined, "at");
  return refuse(path, "a readable file", fileFailure(cause), { cause });
}

/** Reads a file of examples, and notes it as part of the data. @throws {TroupeError} as {@link unreadable} */
export function readText(path: string): Promise<string> {
  noteFile(path);
  return readBoundedText(path, maxFileBytes.text).catch((cause: unknown) => {
    throw unreadable(path, cause);
  });
}
