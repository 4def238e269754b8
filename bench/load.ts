import { loadavg } from "node:os";

/** The machine's load over the last minute: figures of a busy machine are not compared with those of a quiet one. */
export const load = () => (loadavg()[0] ?? Number.NaN).toFixed(1);
