import { cpus, freemem, totalmem } from "node:os";

/** Figures of the machine, by MLflow's names. */
export type SystemFigures = Readonly<
  Record<
    "cpu_utilization_percentage" | "system_memory_usage_megabytes" | "system_memory_usage_percentage",
    number
  >
>;

/** Measures the machine between calls. */
export class SystemMeter {
  #before = timesOf();

  /** The share of processor time since the last call, and the memory in use. */
  read(): SystemFigures {
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
