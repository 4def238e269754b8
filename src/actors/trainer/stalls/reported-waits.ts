/** A shorter wait is not reported. */
const FIRST_MS = 10_000;

/**
 * Waits for a job's own code, whose duration is unknown, and reports a long wait: after ten seconds, and again whenever
 * it has doubled.
 * @param report - receives the wait so far, in ms
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
