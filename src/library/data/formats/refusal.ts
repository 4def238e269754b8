import { fileFailure, TroupeError } from "../../../errors/index.ts";

/** @param place - file and line, or what else names an example */
export function exampleError(place: string, expected: string, got: unknown): TroupeError {
  return new TroupeError(
    "DATA_EXAMPLE",
    { where: "data", expected: `${expected} at ${place}`, got: `${got}` },
    { fields: { place } },
  );
}

/** What opening or reading a file came to. */
export function unreadable(path: string, cause: unknown): TroupeError {
  const { code } = cause as NodeJS.ErrnoException;
  return new TroupeError(
    code === "ENOENT" ? "DATA_MISSING" : "DATA_UNREADABLE",
    { where: "data", expected: `a readable file at ${path}`, got: fileFailure(cause) },
    { fields: { path }, cause },
  );
}
