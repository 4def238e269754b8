import { currentRank } from "./current-rank.ts";

/** What a script tells while it runs; a line each, from the first rank alone. */
export interface Logger {
  info(text: unknown): void;
  warning(text: unknown): void;
  error(text: unknown): void;
}

/**
 * The seed's `get_logger()`: lines among the run's own, in `--events` and on the dashboard too. A warning says that it is one.
 * @throws {TroupeError} `LOOP_ORDER`, when it is written to outside of a rank
 */
export function getLogger(): Logger {
  const writer = (prefix: string) => (text: unknown) =>
    currentRank().print(prefix === "" ? text : `${prefix}: ${text}`);
  return { info: writer(""), warning: writer("warning"), error: writer("error") };
}
