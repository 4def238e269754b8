/**
 * Imports a module of a user's. Where a package.json beside it names no `"type"`, Node runs it all the same and would say once
 * for each thread that it had to look: that is not told.
 */
export async function importQuietly(url: string): Promise<Readonly<Record<string, unknown>>> {
  const { emitWarning } = process;
  const quiet = (warning: string | Error, ...how: unknown[]) => {
    if (codeOf(how) !== "MODULE_TYPELESS_PACKAGE_JSON")
      (emitWarning as (...given: unknown[]) => void).call(process, warning, ...how);
  };
  process.emitWarning = quiet;
  try {
    return (await import(url)) as Record<string, unknown>;
  } finally {
    if (process.emitWarning === quiet) process.emitWarning = emitWarning;
  }
}

/** The code of a warning, which is given in an object or behind its type. */
function codeOf([options, code]: readonly unknown[]): unknown {
  return typeof options === "object" ? (options as { readonly code?: unknown } | null)?.code : code;
}
