import { Runtime, type RuntimeOptions } from "../../src/actors/trainer/index.ts";
import { memory, resetPeakMemory } from "../../src/compute/tensor/index.ts";
import { TroupeError } from "../../src/errors/index.ts";
import { type BenchRow, type Dimension, NUM_RANKS, type Sizes } from "./dimensions.ts";
import { type PlannedRow, planRow } from "./plan-row.ts";

/** Results of a row. */
export interface Measured {
  /** Over the windows. */
  readonly samplesPerSecond: { readonly mean: number; readonly deviation: number };
  /** Peak of all ranks together, by the ledger of tensors. */
  readonly peakBytes: number;
  /** Each kind's own peak, summed over ranks. */
  readonly byKind: Readonly<Record<string, number>>;
  /** Loss of every step. */
  readonly lossesNats: readonly number[];
}

/** A row's result: measured, or refused with a reason. */
export interface RowResult {
  readonly row: BenchRow;
  readonly planned: PlannedRow | undefined;
  readonly measured?: Measured;
  /** Result of stock PyTorch, if asked for. */
  readonly peer?: PeerResult | undefined;
  readonly refusal?: string;
}

/** A row's result in stock PyTorch, or why it has none. `torch` is its version. */
export type PeerResult =
  | {
      readonly torch: string;
      readonly samplesPerSecond: { readonly mean: number; readonly deviation: number };
      /** Sum of all ranks' peaks of tensors. */
      readonly peakBytes: number;
    }
  | { readonly torch: string; readonly none: string };

/** How long a row is measured. */
export interface MeasureOptions {
  readonly windows: number;
  readonly stepsOfWindow: number;
}

/** Steps before the first window. */
export const WARMUP_STEPS = 3;
const jobModule = new URL("./job.ts", import.meta.url);

/** Measures one row, or returns why its layout is refused. */
export async function measureRow(
  { subject }: Dimension,
  row: BenchRow,
  size: Sizes,
  options: MeasureOptions,
): Promise<RowResult> {
  const { tp = 1, pp = 1 } = row.options;
  const replicas = Math.max(1, NUM_RANKS / (tp * pp));
  const accumulation = size.batch / (size.microBatch * replicas);
  try {
    const fused = row.unfused !== true;
    const measured = await measure({ ...row.options, accumulation }, { ...size, subject, fused }, options);
    return { row, planned: subject === "gpt" ? planRow(row, size) : undefined, measured };
  } catch (error) {
    if (row.isRefused !== true || !(error instanceof TroupeError)) throw error;
    return { row, planned: undefined, refusal: error.message };
  }
}

async function measure(
  options: RuntimeOptions,
  { microBatch: _, ...config }: Sizes & { readonly subject: string; readonly fused: boolean },
  { windows, stepsOfWindow }: MeasureOptions,
): Promise<Measured> {
  await using runtime = await Runtime.spawn({
    ranks: NUM_RANKS,
    threadsPerRank: 1,
    warmStandby: false,
    seed: 0,
    memory: { everySteps: 1 },
    ...options,
  });
  const finishedAtMs: number[] = [];
  const lossesNats: number[] = [];
  const kinds: Readonly<Record<string, number>>[] = [];
  let peakBytes = 0;
  runtime.events$.subscribe((event) => {
    if (event.kind === "memory.measured")
      kinds[event.rank] = Object.fromEntries(
        Object.entries(event.byKind).map(([kind, use]) => [kind, use.peakBytes]),
      );
    if (event.kind !== "step.finished") return;
    lossesNats.push(event.lossNats);
    finishedAtMs.push(performance.now());
    if (event.step === WARMUP_STEPS) resetPeakMemory();
    else if (event.step > WARMUP_STEPS) ({ peakBytes } = memory());
  });
  const steps = WARMUP_STEPS + windows * stepsOfWindow;
  await runtime.run(jobModule, { ...config, steps });
  const speeds = Array.from({ length: windows }, (_, window) => {
    const begin = WARMUP_STEPS - 1 + window * stepsOfWindow;
    const ms = (finishedAtMs[begin + stepsOfWindow] ?? 0) - (finishedAtMs[begin] ?? 0);
    return (1000 * stepsOfWindow * config.batch) / ms;
  });
  const byKind: Record<string, number> = {};
  for (const kind of kinds)
    for (const [name, size] of Object.entries(kind)) byKind[name] = (byKind[name] ?? 0) + size;
  return { samplesPerSecond: meanOf(speeds), peakBytes, byKind, lossesNats };
}

/** Mean and sample standard deviation. */
export function meanOf(values: readonly number[]): { readonly mean: number; readonly deviation: number } {
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
  const squares = values.reduce((sum, value) => sum + (value - mean) ** 2, 0);
  return { mean, deviation: Math.sqrt(squares / Math.max(1, values.length - 1)) };
}
