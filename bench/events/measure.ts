import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type EventSink, Runtime, type TroupeEvent } from "troupe";
import { median } from "../measure/median.ts";
import type { Telling } from "./telling.ts";

/** The job of a measurement, and its number of ranks. */
export interface Work {
  readonly job: URL;
  readonly config: Readonly<Record<string, number>>;
  readonly ranks: number;
}

/** The duration and the processor time of a step, in milliseconds. */
export interface Measured {
  readonly stepMs: number;
  /** Processor time of all threads. */
  readonly processMs: number;
  /** Processor time of the main thread, which computes nothing: messages of the run, events, sinks. */
  readonly mainMs: number;
  /** Processor time of the main thread within sinks. */
  readonly sinksMs: number;
}

/** Steps at the beginning that are not measured: code is compiled, threads find their caches. */
const numFirst = 10;

/** Trains and tells. */
export async function measure(work: Work, telling: Telling): Promise<Measured> {
  const folder = mkdtempSync(join(tmpdir(), "troupe-bench-"));
  try {
    const { sinks = [], ...options } = await telling.options(folder);
    const clock = new StepClock(sinks);
    await using runtime = await Runtime.spawn({ ranks: work.ranks, ...options, sinks: [clock] });
    const leave = await telling.look?.(runtime);
    await runtime.run(work.job, work.config);
    leave?.();
    return clock.measured();
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Processor time so far, in milliseconds. */
interface Used {
  readonly processMs: number;
  readonly mainMs: number;
  readonly sinksMs: number;
}

/** Passes events on to sinks, and measures steps meanwhile. */
class StepClock implements EventSink {
  readonly #sinks: readonly EventSink[];
  readonly #durationsMs: number[] = [];
  #sinksMs = 0;
  #first: Used | undefined;
  #last: Used | undefined;

  constructor(sinks: readonly EventSink[]) {
    this.#sinks = sinks;
  }

  write(event: TroupeEvent): void {
    const beginMs = mainMs();
    for (const sink of this.#sinks) sink.write(event);
    this.#sinksMs += mainMs() - beginMs;
    if (event.kind !== "step.finished") return;
    this.#durationsMs.push(event.durationMs);
    this.#last = { processMs: milliseconds(process.cpuUsage()), mainMs: mainMs(), sinksMs: this.#sinksMs };
    if (this.#durationsMs.length === numFirst) this.#first = this.#last;
  }

  async close(): Promise<void> {
    await Promise.all(this.#sinks.map((sink) => sink.close()));
  }

  measured(): Measured {
    const numSteps = this.#durationsMs.length - numFirst;
    const aStep = (of: keyof Used) => ((this.#last?.[of] ?? 0) - (this.#first?.[of] ?? 0)) / numSteps;
    return {
      stepMs: median(this.#durationsMs.slice(numFirst)),
      processMs: aStep("processMs"),
      mainMs: aStep("mainMs"),
      sinksMs: aStep("sinksMs"),
    };
  }
}

function mainMs(): number {
  return milliseconds(process.threadCpuUsage());
}

function milliseconds({ user, system }: { readonly user: number; readonly system: number }): number {
  return (user + system) / 1000;
}
