import { join } from "node:path";
import { Runtime, type TroupeEvent } from "troupe";
import { memory, resetPeakMemory } from "troupe/tensor";
import { median } from "../measure/median.ts";

/** Models to be saved: settings of the job of `bench gpt`. */
export const sizes = {
  gpt2: { layers: 12, dim: 768, heads: 12, vocab: 50257, batch: 4, seq: 256 },
  small: { layers: 4, dim: 256, heads: 8, vocab: 4096, batch: 8, seq: 128 },
} as const;

/** @returns whether there is a model of that name */
export function isSize(name: string): name is keyof typeof sizes {
  return name in sizes;
}

/** The cost of a save for the training that continues meanwhile. */
export interface TrainingCost {
  readonly numParameters: number;
  /** Bytes of parameters and moments. */
  readonly stateBytes: number;
  /** Median step with nothing being saved. */
  readonly stepMs: number;
  /** The runtime's own figure of each save: updates waiting for copies, event loops busy with them. */
  readonly blockedMs: readonly number[];
  /** The time that ranks waited in the steps of one save, beyond their waits in as many others. */
  readonly waitedMs: number;
  /** By how much those steps took longer than as many others. */
  readonly stretchedMs: number;
  readonly savingMs: number;
  /** The most that copies of the state took at once. */
  readonly stagedBytes: number;
  /** The checkpoint. */
  readonly path: string;
}

/** Steps before the first is looked at. */
const warmup = 4;
/** Saves that are looked at; one more, of the last step, has no training beside it. */
const numSaves = 3;
const everySteps = 12;
const steps = everySteps * (numSaves + 1);

/**
 * Trains two ranks and saves some times while they go on.
 * @param progress - receives the place that the measurement has reached
 */
export async function measureTraining(
  size: keyof typeof sizes,
  folder: string,
  progress: (place: string) => void,
): Promise<TrainingCost> {
  const checkpoint = { dir: join(folder, "run"), everySteps, keepLast: 1 };
  await using runtime = await Runtime.spawn({ ranks: 2, zero: 3, precision: "bf16", checkpoint });
  const events: TroupeEvent[] = [];
  let peakBytes = 0;
  runtime.events$.subscribe((event) => {
    events.push(event);
    if (event.kind === "step.finished") progress(`training, step ${event.step} of ${steps}`);
    if (event.kind === "checkpoint.saved") peakBytes = Math.max(peakBytes, memory().peakByTag.snapshot ?? 0);
  });
  resetPeakMemory();
  await runtime.run(new URL("../gpt/job.ts", import.meta.url), { ...sizes[size], steps });
  return { ...costOf(events), stagedBytes: peakBytes };
}

function costOf(events: readonly TroupeEvent[]): Omit<TrainingCost, "stagedBytes"> {
  const ofKind = <K extends TroupeEvent["kind"]>(kind: K) =>
    events.filter((event): event is Extract<TroupeEvent, { kind: K }> => event.kind === kind);
  const saves = ofKind("checkpoint.saved");
  const looked = ofKind("step.finished").filter(({ step }) => step > warmup && step < steps);
  const isBusy = ({ timeMs, durationMs }: (typeof looked)[number]) =>
    saves.some((saved) => timeMs > saved.timeMs - saved.durationMs && timeMs - durationMs < saved.timeMs);
  const busy = looked.filter(isBusy);
  const quiet = looked.filter((step) => !isBusy(step));
  const stepMs = median(quiet.map(({ durationMs }) => durationMs));
  const exposedMs = median(quiet.map((step) => step.exposedMs));
  const beyond = (values: readonly number[], usual: number) =>
    values.reduce((sum, value) => sum + value - usual, 0) / numSaves;
  const numParameters = ofKind("run.started")[0]?.numParameters ?? Number.NaN;
  return {
    numParameters,
    stateBytes: 12 * numParameters,
    stepMs,
    blockedMs: saves.slice(0, numSaves).map(({ blockedMs }) => blockedMs ?? Number.NaN),
    waitedMs: beyond(
      busy.map((step) => step.exposedMs),
      exposedMs,
    ),
    stretchedMs: beyond(
      busy.map(({ durationMs }) => durationMs),
      stepMs,
    ),
    savingMs: median(saves.slice(0, numSaves).map(({ durationMs }) => durationMs)),
    path: saves.at(-1)?.path ?? "",
  };
}
