import { currentRank } from "./current-rank.ts";

/** Writes a script's messages, a line each, from the first rank alone. */
export interface Logger {
  info(text: unknown): void;
  warning(text: unknown): void;
  error(text: unknown): void;
}

/**
 * Rapidformer's `get_logger()`: its lines are among the run's own, in `--events` and on the dashboard. A warning is marked as one.
 * @throws {TroupeError} `LOOP_ORDER` for a message outside a rank
 */
export function getLogger(): Logger {
  const writer = (prefix: string) => (text: unknown) =>
    currentRank().print(prefix === "" ? text : `${prefix}: ${text}`);
  return { info: writer(""), warning: writer("warning"), error: writer("error") };
}
