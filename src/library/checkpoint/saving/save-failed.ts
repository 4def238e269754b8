import { getSystemErrorName } from "node:util";
import { TroupeError } from "../../../errors/index.ts";

/** The error of a save, with its first cause. */
export function saveFailed(path: string, step: number, cause: unknown): TroupeError {
  if (cause instanceof TroupeError && cause.code === "CHECKPOINT_SAVE_FAILED") return cause;
  const isPlace = cause instanceof TroupeError && placeCodes.has(cause.code);
  return new TroupeError("CHECKPOINT_SAVE_FAILED", {
    where: "checkpoint",
    expected: `to save ${path}`,
    got: `"${(cause as Error).message}"`,
    hint: isPlace ? undefined : "free space or repair the disk; earlier checkpoints are kept",
    fields: { path, step, errno: errnoOf(cause) },
    cause,
  });
}

/** Codes of errors whose own hint covers the place. */
const placeCodes: ReadonlySet<string> = new Set([
  "CHECKPOINT_DIRECTORY",
  "CHECKPOINT_MOVED",
  "CHECKPOINT_TAKEN",
]);

function errnoOf(cause: unknown): string | undefined {
  if (!(cause instanceof TroupeError)) return (cause as NodeJS.ErrnoException).code;
  const { errorNumber } = cause.fields;
  return errorNumber === undefined ? undefined : getSystemErrorName(-Number(errorNumber));
}
