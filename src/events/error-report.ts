/** An error as plain data. */
export interface ErrorReport {
  /** A code of `errorTable`, or one of the system's, where there is one. */
  readonly code?: string;
  readonly message: string;
  /** Where it first happened, `name#incarnation`. */
  readonly actor?: string;
  readonly cause?: ErrorReport;
}

const maxCauses = 8;

/** Any thrown value as plain data, its causes with it. */
export function reportError(error: unknown, numCauses = 0): ErrorReport {
  if (!(error instanceof Error)) return { message: String(error) };
  const { code } = error as { code?: unknown };
  const hasCause = error.cause !== undefined && numCauses < maxCauses;
  return {
    ...(typeof code === "string" ? { code } : {}),
    message: error.message,
    ...(hasCause ? { cause: reportError(error.cause, numCauses + 1) } : {}),
  };
}
