/**
 * Imports a user's module without Node's warning about a package.json that names no `"type"`, which every thread would
 * repeat.
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

/** The code of a warning, given in an object or after its type. */
function codeOf([options, code]: readonly unknown[]): unknown {
  return typeof options === "object" ? (options as { readonly code?: unknown } | null)?.code : code;
}
