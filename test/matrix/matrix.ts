import type { RuntimeOptions } from "../../src/entries/index.ts";
import { lossesOf, outcomeOf, type Workspace } from "../fixtures/run-tiny.ts";
import type { Switch } from "./switches.ts";

/** The result of one combination. */
export interface Outcome {
  readonly names: readonly string[];
  /** Whether every loss has the bits of the run without the switches that promise to change nothing. */
  readonly sameBits: boolean;
  /** Largest difference of a loss to one rank's that computes the same mathematics, in nats. */
  readonly deviationNats: number;
  readonly toleranceNats: number;
  /** Why blocks were issued one operator at a time though they were to be programs. */
  readonly unrecorded: readonly string[];
  /** Calls of blocks that were replayed as programs. */
  readonly numReplayed: number;
  /** Calls that were recorded in the last step. */
  readonly numRecordedLast: number;
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
 * equal up to the order of sums. A run that several combinations are compared with is made once, as `lossesOf` has it. Where
 * a device is named the combinations train there; what they are compared with trains on the CPU as ever, but for a GPU's,
 * which adds in another order and is compared with itself.
 */
export class Matrix {
  readonly #workspace: Workspace;
  readonly #on: RuntimeOptions;
  readonly #comparedOn: RuntimeOptions;

  constructor(workspace: Workspace, device = "cpu") {
    this.#workspace = workspace;
    this.#on = device === "cpu" ? {} : { device };
    this.#comparedOn = device.startsWith("cuda") ? { device } : {};
  }

  /** @returns what became of four ranks with these switches on */
  async try(on: readonly Switch[]): Promise<Outcome> {
    const names = on.map(({ name }) => name);
    const toleranceNats = Math.max(FLOAT32_TOLERANCE_NATS, ...names.map((name) => TOLERANCE_NATS[name] ?? 0));
    try {
      const job = on.find((each) => each.job !== undefined)?.job;
      const [options, config] = spread(on);
      const { losses, events } = await outcomeOf(this.#workspace, { ...options, ...this.#on }, config, job);
      const unrecorded = events.flatMap((event) => (event.kind === "block.unrecorded" ? [event.reason] : []));
      const calls = events.flatMap((event) =>
        event.kind === "step.finished" && event.blockCalls !== undefined ? [event.blockCalls] : [],
      );
      const numReplayed = calls.reduce((sum, { replayed }) => sum + replayed, 0);
      const numRecordedLast = calls.at(-1)?.recorded ?? 0;
      const without = await this.#compared(spread(on.filter(({ changes }) => changes !== "nothing")));
      const oneRank = await this.#compared(alone(on));
      const differences = losses.map((loss, step) => Math.abs(loss - (oneRank[step] ?? Number.NaN)));
      return {
        names,
        sameBits: losses.length === STEPS && losses.every((loss, step) => loss === without[step]),
        deviationNats: Math.max(...differences),
        toleranceNats,
        unrecorded,
        numReplayed,
        numRecordedLast,
        failure: undefined,
      };
    } catch (error) {
      const failure = (error as Error).message;
      return {
        names,
        sameBits: false,
        deviationNats: Number.NaN,
        toleranceNats,
        unrecorded: [],
        numReplayed: 0,
        numRecordedLast: 0,
        failure,
      };
    }
  }

  #compared([options, config]: Settings): Promise<readonly number[]> {
    return lossesOf(this.#workspace, { ...options, ...this.#comparedOn }, config);
  }
}

/** @returns whether an outcome is what its switches promise */
export function holds({ failure, sameBits, deviationNats, toleranceNats }: Outcome): boolean {
  return failure === undefined && sameBits && deviationNats <= toleranceNats;
}

type Settings = readonly [RuntimeOptions & { readonly ranks: number }, Readonly<Record<string, unknown>>];

/** Four ranks with these switches on. */
function spread(on: readonly Switch[]): Settings {
  const offload: RuntimeOptions["offload"] & object = Object.assign(
    {},
    ...on.map((each) => each.options?.offload),
  );
  const options: RuntimeOptions = Object.assign(
    {},
    ...on.map((each) => each.options),
    Object.keys(offload).length > 0 && { offload },
  );
  const config = Object.assign({ layers: 4, heads: 4, batch: BATCH }, ...on.map((each) => each.config));
  const staged = (options.pp ?? 1) > 1; // stages need micro-batches to be full
  const accumulation = Math.max(config.accumulation ?? 1, staged ? 2 : 1);
  return [
    { zero: 0, ...options, ranks: NUM_RANKS, steps: STEPS },
    { ...config, accumulation },
  ];
}

/**
 * One rank that computes the same mathematics. It makes the micro-batches that all replicas make together: what is drawn
 * at random and how many tokens an expert takes goes by them.
 */
function alone(on: readonly Switch[]): Settings {
  const [{ tp = 1, pp = 1 }, { accumulation }] = spread(on);
  const [options, config] = spread(on.filter(({ changes }) => changes === "mathematics"));
  const numMicroBatches = (NUM_RANKS / (tp * pp)) * (accumulation as number);
  return [
    { ...options, ranks: 1, ep: 1 },
    { ...config, accumulation: numMicroBatches },
  ];
}
