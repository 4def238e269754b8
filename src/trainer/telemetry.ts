import { optionError, refuseUnknown } from "./option-error.ts";
import type { RuntimeOptions } from "./options.ts";

/** How often something is told that costs more than a step's own figures. */
export interface Cadence {
  readonly everySteps: number;
}

/** What a run tells beside what always is told; Infinity: never. */
export interface TelemetrySettings {
  /** Tells of what every actor does to every block. */
  readonly trace: boolean;
  /** Of the messages that no traced handling has sent, each so-many-th begins a trace; 0: none. */
  readonly traceEvery: number;
  readonly memoryEverySteps: number;
  readonly histogramsEverySteps: number;
}

/** Counting takes some 60 µs for eight ranks: this often it is far below a thousandth of any step. */
const MEMORY_EVERY_STEPS = 10;

/** @throws {TroupeError} `OPTION` */
export function settleTelemetry(options: RuntimeOptions): TelemetrySettings {
  const { trace = false } = options;
  return {
    trace,
    traceEvery: least("traceEvery", options.traceEvery ?? (trace ? 1 : 0), 0),
    memoryEverySteps: every("memory", options.memory, MEMORY_EVERY_STEPS),
    histogramsEverySteps: every("histograms", options.histograms, Number.POSITIVE_INFINITY),
  };
}

function every(option: string, cadence: Cadence | undefined, otherwise: number): number {
  if (cadence !== undefined) refuseUnknown(option, cadence, { everySteps: true });
  if (cadence === undefined || cadence.everySteps === Number.POSITIVE_INFINITY) {
    return cadence?.everySteps ?? otherwise;
  }
  return least(`${option}.everySteps`, cadence.everySteps, 1);
}

function least(option: string, value: number, lowest: number): number {
  if (Number.isSafeInteger(value) && value >= lowest) return value;
  throw optionError(option, `a whole number ≥ ${lowest}`, value);
}
