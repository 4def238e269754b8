import { cpus, loadavg } from "node:os";

/** The machine and the time of a benchmark's figures, in one line. @param more - behind Node's version, such as libtorch's */
export function machine(...more: readonly string[]): string {
  const [cores, versions] = [`${cpus().length} cores`, [`Node ${process.version}`, ...more]];
  return [cpus()[0]?.model ?? "?", cores, ...versions, new Date().toISOString()].join(", ");
}

/** The machine's load over the last minute: figures of a busy machine are not compared with those of a quiet one. */
export const load = () => (loadavg()[0] ?? Number.NaN).toFixed(1);
