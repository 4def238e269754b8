/** Nobody wonders before. */
const FIRST_MS = 10_000;

/**
 * Waits for something of a job's own, whose duration nobody knows, and reports when it takes long: after ten seconds, and again
 * whenever that has doubled.
 * @param report - is given for how long it has been, in ms
 */
export async function reportingWait<T>(work: Promise<T>, report: (waitedMs: number) => void): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const wait = (untilMs: number, afterMs: number) => {
    timer = setTimeout(() => {
      report(untilMs);
      wait(2 * untilMs, untilMs);
    }, afterMs);
  };
  wait(FIRST_MS, FIRST_MS);
  try {
    return await work;
  } finally {
    clearTimeout(timer);
  }
}
