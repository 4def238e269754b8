import { cpus, freemem, totalmem } from "node:os";

/** Figures of the machine, by MLflow's names. */
export type SystemFigures = Readonly<
  Record<
    "cpu_utilization_percentage" | "system_memory_usage_megabytes" | "system_memory_usage_percentage",
    number
  >
>;

/** The least time between two figures. */
const EVERY_MS = 10_000;

/** Measures the machine now and then. */
export class SystemMeter {
  #before = timesOf();
  #readMs = Number.NEGATIVE_INFINITY;

  /** The share of processor time since the last figures, and the memory in use; undefined within ten seconds of those. */
  readDue(timeMs: number): SystemFigures | undefined {
    if (timeMs - this.#readMs < EVERY_MS) return undefined;
    this.#readMs = timeMs;
    const now = timesOf();
    const [idle, all] = [now.idle - this.#before.idle, now.all - this.#before.all];
    this.#before = now;
    const usedBytes = totalmem() - freemem();
    return {
      cpu_utilization_percentage: all > 0 ? 100 * (1 - idle / all) : 0,
      system_memory_usage_megabytes: usedBytes / 1e6,
      system_memory_usage_percentage: (100 * usedBytes) / totalmem(),
    };
  }
}

function timesOf(): { readonly idle: number; readonly all: number } {
  let [idle, all] = [0, 0];
  for (const { times } of cpus()) {
    idle += times.idle;
    all += times.user + times.nice + times.sys + times.irq + times.idle;
  }
  return { idle, all };
}
