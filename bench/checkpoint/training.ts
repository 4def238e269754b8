import { join } from "node:path";
import { memory, Runtime, resetPeakMemory, type TroupeEvent } from "troupe";

/** Models to be saved: what the job of `bench gpt` is told. */
export const sizes = {
  gpt2: { layers: 12, dim: 768, heads: 12, vocab: 50257, batch: 4, seq: 256 },
  small: { layers: 4, dim: 256, heads: 8, vocab: 4096, batch: 8, seq: 128 },
} as const;

/** @returns whether there is a model of that name */
export function isSize(name: string): name is keyof typeof sizes {
  return name in sizes;
}

/** What a save costs the training that goes on meanwhile. */
export interface TrainingCost {
  readonly numParameters: number;
  /** Of parameters and moments. */
  readonly stateBytes: number;
  /** Median step with nothing being saved. */
  readonly stepMs: number;
  /** What ranks waited, in the steps of one save, beyond what they wait in as many others. */
  readonly blockedMs: number;
  /** What those steps took beyond as many others. */
  readonly stretchedMs: number;
  readonly savingMs: number;
  /** The most that copies of the state took at once. */
  readonly stagedBytes: number;
  /** The checkpoint. */
  readonly path: string;
}

/** Steps before the first is looked at. */
const warmup = 4;
/** A save falls due in the middle; one more, of the last step, is not looked at. */
const saveAt = 16;
const steps = 32;

/** Trains two ranks and saves once while they go on. */
export async function measureTraining(size: keyof typeof sizes, folder: string): Promise<TrainingCost> {
  const checkpoint = { dir: join(folder, "run"), everySteps: saveAt };
  await using runtime = await Runtime.spawn({ ranks: 2, zero: 3, precision: "bf16", checkpoint });
  const events: TroupeEvent[] = [];
  let peakBytes = 0;
  runtime.events$.subscribe((event) => {
    events.push(event);
    if (event.kind === "checkpoint.started") resetPeakMemory();
    if (event.kind === "checkpoint.saved") peakBytes = Math.max(peakBytes, memory().peakByTag.snapshot ?? 0);
  });
  await runtime.run(new URL("../gpt/job.ts", import.meta.url), { ...sizes[size], steps });
  return { ...costOf(events), stagedBytes: peakBytes };
}

function costOf(events: readonly TroupeEvent[]): Omit<TrainingCost, "stagedBytes"> {
  const first = <K extends TroupeEvent["kind"]>(kind: K) => {
    const found = events.find((event) => event.kind === kind);
    if (found === undefined) throw new Error(`[bench checkpoint] expected ${kind}: got none`);
    return found as Extract<TroupeEvent, { kind: K }>;
  };
  const saved = first("checkpoint.saved");
  const made = events.flatMap((event) => (event.kind === "step.finished" ? [event] : []));
  const beginMs = saved.timeMs - saved.durationMs;
  const isBusy = ({ timeMs, durationMs }: (typeof made)[number]) =>
    timeMs > beginMs && timeMs - durationMs < saved.timeMs;
  const looked = made.filter(({ step }) => step > warmup && step < steps);
  const busy = looked.filter(isBusy);
  const quiet = looked.filter((step) => !isBusy(step));
  const stepMs = median(quiet.map(({ durationMs }) => durationMs));
  const exposedMs = median(quiet.map((step) => step.exposedMs));
  const { numParameters } = first("run.started");
  return {
    numParameters,
    stateBytes: 12 * numParameters,
    stepMs,
    blockedMs: busy.reduce((sum, step) => sum + step.exposedMs - exposedMs, 0),
    stretchedMs: busy.reduce((sum, step) => sum + step.durationMs - stepMs, 0),
    savingMs: saved.durationMs,
    path: saved.path,
  };
}

function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  return ((sorted[(sorted.length - 1) >> 1] ?? Number.NaN) + (sorted[sorted.length >> 1] ?? Number.NaN)) / 2;
}
