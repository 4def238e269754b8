import { mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Runtime, type RuntimeOptions } from "../../src/actors/trainer/index.ts";
import { temporaryRoot } from "../../src/errors/untrusted/index.ts";
import { meanOf } from "./measure.ts";

/** A strategy's losses, compared with one rank in single precision. */
export interface Convergence {
  readonly name: string;
  /** Loss of every step, a mean over the seeds. */
  readonly lossesNats: readonly number[];
  /** Loss of the last tenth of the steps, over the seeds. */
  readonly last: { readonly mean: number; readonly deviation: number };
  /** The largest difference of that from one rank's with the same seed; 0 for one rank itself. */
  readonly apart: number;
}

/** Strategies that must learn the same; the others are compared with the first. */
const strategies: Readonly<Record<string, RuntimeOptions>> = {
  "one rank": { ranks: 1, zero: 0 },
  "ZeRO 0": { ranks: 2, zero: 0 },
  "ZeRO 1": { ranks: 2, zero: 1 },
  "ZeRO 2": { ranks: 2, zero: 2 },
  "ZeRO 3": { ranks: 2, zero: 3 },
  "TP 2": { ranks: 2, zero: 0, tp: 2 },
  "PP 2": { ranks: 2, zero: 0, pp: 2, accumulation: 2 },
  "ZeRO 3, recomputed": { ranks: 2, zero: 3, recompute: true },
  "mixed precision": { ranks: 2, zero: 1, precision: "amp-bf16" },
};

export const SEEDS: readonly number[] = [1, 2, 3];

const jobModule = new URL("./text-job.ts", import.meta.url);
/** A text that every copy of the package has: the default for training. */
export const ownText = fileURLToPath(new URL("../../README.md", import.meta.url));

/**
 * Trains a small GPT on the letters of a text with every strategy, with three seeds each.
 * @param options.text - path of the text
 * @param options.take - returns a run's losses. Default: calls `measure`; undefined leaves the strategy out
 */
export async function measureConvergence(options: {
  readonly steps: number;
  readonly text?: string;
  /** Names of {@link strategies}. Default: all. */
  readonly names?: readonly string[];
  readonly take?: (
    run: { readonly name: string; readonly seed: number },
    measure: () => Promise<readonly number[]>,
  ) => Promise<readonly number[] | undefined>;
  readonly tell: (line: string) => void;
}): Promise<Convergence[]> {
  const { steps, text = ownText, names = Object.keys(strategies), tell } = options;
  const { take = (_, measure) => measure() } = options;
  const cache = mkdtempSync(join(temporaryRoot(), "troupe-bench-"));
  try {
    const results: Convergence[] = [];
    let alone: readonly number[] = [];
    for (const name of names) {
      const runs: (readonly number[])[] = [];
      for (const seed of SEEDS) {
        const losses = await take({ name, seed }, () => {
          tell(`convergence, ${name}, seed ${seed}`);
          return lossesOf({ ...strategies[name], seed }, { steps, text, cache });
        });
        if (losses !== undefined) runs.push(losses);
      }
      if (runs.length < SEEDS.length) continue;
      const ends = runs.map((losses) => meanOf(losses.slice(-Math.max(1, Math.floor(steps / 10)))).mean);
      if (alone.length === 0) alone = ends;
      results.push({
        name,
        lossesNats: (runs[0] ?? []).map((_, step) => meanOf(runs.map((losses) => losses[step] ?? 0)).mean),
        last: meanOf(ends),
        apart: Math.max(...ends.map((end, seed) => Math.abs(end - (alone[seed] ?? 0)))),
      });
    }
    return results;
  } finally {
    rmSync(cache, { recursive: true, force: true });
  }
}

async function lossesOf(
  options: RuntimeOptions,
  config: Readonly<Record<string, string | number>>,
): Promise<number[]> {
  await using runtime = await Runtime.spawn({ threadsPerRank: 1, warmStandby: false, ...options });
  const losses: number[] = [];
  runtime.on("step.finished", ({ step, lossNats }) => {
    losses[step - 1] = lossNats;
  });
  await runtime.run(jobModule, config);
  return losses;
}
