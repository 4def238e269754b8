/** Lines on a log, at most one in so many milliseconds. */
const logEveryMs = 10_000;

let saidMs = Number.NEGATIVE_INFINITY;

/**
 * Says on stderr where a long benchmark is, so that stdout holds its figures alone: on a terminal in one line that is written
 * over, in a log a line every ten seconds.
 */
export function progress(place: string): void {
  if (process.stderr.isTTY) {
    process.stderr.write(`\r\x1b[2K${place} ...`);
    if (!isWaitingForEnd) process.once("exit", () => process.stderr.write("\n"));
    isWaitingForEnd = true;
    return;
  }
  if (performance.now() - saidMs < logEveryMs) return;
  saidMs = performance.now();
  process.stderr.write(`${place} ...\n`);
}

let isWaitingForEnd = false;
