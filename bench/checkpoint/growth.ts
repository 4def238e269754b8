import { Runtime, type RuntimeOptions } from "troupe";

/** How a process's memory changes from save to save. */
export interface Growth {
  readonly numSaves: number;
  /** Bytes of one save. */
  readonly sizeBytes: number;
  /** Slope of a line through the process's memory after each save, in bytes a save. */
  readonly slopeBytes: number;
}

/** Allocators and compilers have what they need after so many. */
const warmup = 40;

/**
 * Saves a small model after each step.
 * @param progress - receives the place that the measurement has reached
 */
export async function measureGrowth(
  dir: string,
  numSaves: number,
  progress: (place: string) => void,
): Promise<Growth> {
  const checkpoint: RuntimeOptions["checkpoint"] = { dir, everySteps: 1, keepLast: 2 };
  await using runtime = await Runtime.spawn({ ranks: 2, threadsPerRank: 1, checkpoint });
  const held: number[] = [];
  let sizeBytes = 0;
  runtime.events$.subscribe((event) => {
    if (event.kind !== "checkpoint.saved") return;
    held.push(process.memoryUsage.rss());
    progress(`memory from save to save, ${held.length} of ${numSaves + warmup}`);
    sizeBytes = event.sizeBytes;
  });
  const model = { layers: 2, dim: 128, heads: 4, vocab: 2048, batch: 4, seq: 32 };
  await runtime.run(new URL("../gpt/job.ts", import.meta.url), { ...model, steps: numSaves + warmup });
  return { numSaves, sizeBytes, slopeBytes: slopeOf(held.slice(warmup)) };
}

/** Rise of the line of least squares through values at 0, 1, 2, … */
export function slopeOf(values: readonly number[]): number {
  const middle = (values.length - 1) / 2;
  const moments = values.reduce((sum, value, index) => sum + (index - middle) * value, 0);
  return moments / values.reduce((sum, _, index) => sum + (index - middle) ** 2, 0);
}
