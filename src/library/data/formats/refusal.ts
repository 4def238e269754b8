import { fileFailure, TroupeError } from "../../../errors/index.ts";

/** The error for an invalid example. @param place - file and line, or another name of the example */
export function exampleError(place: string, expected: string, got: unknown): TroupeError {
  return new TroupeError("DATA_EXAMPLE", {
    where: "data",
    expected: `${expected} at ${place}`,
    got: `${got}`,
    fields: { place },
  });
}

/** The error for a file that cannot be opened or read. */
export function unreadable(path: string, cause: unknown): TroupeError {
  const { code } = cause as NodeJS.ErrnoException;
  return new TroupeError(code === "ENOENT" ? "DATA_MISSING" : "DATA_UNREADABLE", {
    where: "data",
    expected: `a readable file at ${path}`,
    got: fileFailure(cause),
    fields: { path },
    cause,
  });
}
