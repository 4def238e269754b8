import { weightOf, weighValue } from "../../../job/index.ts";
import type { BatchRequest, EvaluatedBatch, RankEvaluated } from "../../protocols/index.ts";

/** Held-out batches of one rank in one message: a long evaluation has many short answers. */
const EVALUATED_AT_ONCE = 8;

/** The result of an evaluation. */
export interface EvaluatedLoss {
  /** Σ weight · loss / Σ weight over the batches; of several named losses their sum. */
  readonly lossNats: number;
  /** By name, if losses have names. */
  readonly losses?: Readonly<Record<string, number>>;
  readonly numSamples: number;
  readonly numTokens: number | undefined;
}

/** @returns the held-out batches in parts, each one message a rank */
export function evaluationOrders(batches: readonly BatchRequest[], numRanks: number): BatchRequest[][] {
  const size = EVALUATED_AT_ONCE * numRanks;
  const numOrders = Math.ceil(batches.length / size);
  return Array.from({ length: numOrders }, (_, index) => batches.slice(index * size, (index + 1) * size));
}

/** Adds up the ranks' measurements, one part after the other. */
export class Evaluation {
  readonly #batches: EvaluatedBatch[] = [];

  /** @param shares - of one part, in rank order */
  add(shares: readonly RankEvaluated[]): void {
    this.#batches.push(...inOrder(shares));
  }

  get loss(): EvaluatedLoss {
    const { losses: first } = this.#batches[0] ?? {};
    const counts = {
      numSamples: sum(this.#batches.map(({ numSamples }) => numSamples)),
      numTokens: sumOfCounted(this.#batches.map(({ numTokens }) => numTokens)),
    };
    if (typeof first !== "object") return { lossNats: this.#meanOf(undefined), ...counts };
    const losses = Object.fromEntries(Object.keys(first).map((name) => [name, this.#meanOf(name)]));
    return { lossNats: sum(Object.values(losses)), losses, ...counts };
  }

  /** The mean of the loss of that name; 0 if nothing counts. */
  #meanOf(name: string | undefined): number {
    const weights = this.#batches.map(({ weight }) => weightOf(weight, name));
    const total = sum(weights);
    const weighed = this.#batches.map(({ losses }, index) =>
      weighValue(
        typeof losses === "number" ? losses : (losses[name ?? ""] ?? Number.NaN),
        weights[index] ?? 0,
      ),
    );
    return total === 0 ? 0 : sum(weighed) / total;
  }
}

/** The ranks' batches in the order of dealing, so that the mean does not depend on the number of ranks. */
function inOrder(shares: readonly RankEvaluated[]): EvaluatedBatch[] {
  const rounds = Math.max(...shares.map((share) => share.batches.length));
  return Array.from({ length: rounds }, (_, round) =>
    shares.flatMap(({ batches }) => batches[round] ?? []),
  ).flat();
}

/** @returns the sum of the defined counts; undefined without any */
export function sumOfCounted(counts: readonly (number | undefined)[]): number | undefined {
  const counted = counts.filter((count) => count !== undefined);
  return counted.length === 0 ? undefined : sum(counted);
}

/** Returns the sum of numbers; 0 without any. */
export const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0);
