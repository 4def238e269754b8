import type { RuntimeOptions } from "../../src/index.ts";
import { lossesOf, type Workspace } from "../fixtures/run-tiny.ts";
import type { Switch } from "./switches.ts";

/** What became of one combination. */
export interface Outcome {
  readonly names: readonly string[];
  /** Whether every loss has the bits of the run without the switches that promise to change nothing. */
  readonly sameBits: boolean;
  /** Largest difference of a loss to one rank's that computes the same mathematics, in nats. */
  readonly deviationNats: number;
  readonly toleranceNats: number;
  /** Why the run failed, if it did. */
  readonly failure: string | undefined;
}

const NUM_RANKS = 4;
/** Samples a step: 4 ranks × 4 micro-batches. */
const BATCH = 16;
const STEPS = 6;

/**
 * Narrow dtypes round each of the sums that a strategy splits: 8 bits of mantissa for bfloat16, 11 for float16. In float32
 * the order of sums alone differs, some 1e-7 a step, which six steps of training let grow.
 */
const TOLERANCE_NATS: Readonly<Record<string, number>> = {
  bf16: 0.1,
  "bf16 stochastic": 0.1,
  "amp-bf16": 0.1,
  fp16: 0.02,
};
const FLOAT32_TOLERANCE_NATS = 1e-4;

/**
 * Trains combinations of switches on a tiny GPT with four ranks. Two comparisons: with the same run without what promises
 * to change nothing, which must be equal to the bit, and with one rank that computes the same mathematics, which must be
 * equal up to the order of sums. Runs that several combinations are compared with are made once.
 */
export class Matrix {
  readonly #workspace: Workspace;
  readonly #runs = new Map<string, Promise<readonly number[]>>();

  constructor(workspace: Workspace) {
    this.#workspace = workspace;
  }

  /** @returns what became of four ranks with these switches on */
  async try(on: readonly Switch[]): Promise<Outcome> {
    const names = on.map(({ name }) => name);
    const toleranceNats = Math.max(FLOAT32_TOLERANCE_NATS, ...names.map((name) => TOLERANCE_NATS[name] ?? 0));
    try {
      const losses = await this.#train(on, NUM_RANKS);
      const without = await this.#train(
        on.filter(({ changes }) => changes !== "nothing"),
        NUM_RANKS,
      );
      const oneRank = await this.#train(
        on.filter(({ changes }) => changes === "mathematics"),
        1,
      );
      const differences = losses.map((loss, step) => Math.abs(loss - (oneRank[step] ?? Number.NaN)));
      return {
        names,
        sameBits: losses.length === STEPS && losses.every((loss, step) => loss === without[step]),
        deviationNats: Math.max(...differences),
        toleranceNats,
        failure: undefined,
      };
    } catch (error) {
      const failure = (error as Error).message;
      return { names, sameBits: false, deviationNats: Number.NaN, toleranceNats, failure };
    }
  }

  #train(on: readonly Switch[], ranks: number): Promise<readonly number[]> {
    const key = `${ranks} ${on.map(({ name }) => name).join(" + ")}`;
    const run = this.#runs.get(key) ?? lossesOf(this.#workspace, ...settingsOf(on, ranks));
    this.#runs.set(key, run);
    return run;
  }
}

/** @returns whether an outcome is what its switches promise */
export function holds({ failure, sameBits, deviationNats, toleranceNats }: Outcome): boolean {
  return failure === undefined && sameBits && deviationNats <= toleranceNats;
}

function settingsOf(
  on: readonly Switch[],
  ranks: number,
): [RuntimeOptions, Readonly<Record<string, unknown>>] {
  const alone = ranks === 1;
  const options: RuntimeOptions = Object.assign({}, ...on.map((each) => each.options));
  const config = Object.assign({ layers: 4, heads: 4, batch: BATCH }, ...on.map((each) => each.config));
  // One rank adds up micro-batches where four replicas do; stages need micro-batches to be full.
  const staged = (options.pp ?? 1) > 1;
  const accumulation = alone ? NUM_RANKS : Math.max(config.accumulation ?? 1, staged ? 2 : 1);
  const plain = alone ? { ...options, ep: 1 } : options;
  return [
    { zero: 0, ...plain, ranks, steps: STEPS },
    { ...config, accumulation },
  ];
}
