import type { BatchRequest, EvaluatedBatch, RankEvaluated } from "../../protocols/index.ts";

/** Held-out batches of one rank in one message, so that a long evaluation is many short answers. */
const EVALUATED_AT_ONCE = 8;

/** What an evaluation came to. */
export interface EvaluatedLoss {
  /** Mean over the tokens. */
  readonly lossNats: number;
  readonly numSamples: number;
  readonly numTokens: number;
}

/** @returns the held-out batches as they are ordered, part by part */
export function evaluationOrders(batches: readonly BatchRequest[], numRanks: number): BatchRequest[][] {
  const size = EVALUATED_AT_ONCE * numRanks;
  const numOrders = Math.ceil(batches.length / size);
  return Array.from({ length: numOrders }, (_, index) => batches.slice(index * size, (index + 1) * size));
}

/** Adds up what the ranks have measured of one part after the other. */
export class Evaluation {
  readonly #batches: EvaluatedBatch[] = [];

  /** @param shares - of one part, in rank order */
  add(shares: readonly RankEvaluated[]): void {
    this.#batches.push(...inOrder(shares));
  }

  get loss(): EvaluatedLoss {
    const numTokens = sum(this.#batches.map((batch) => batch.numTokens));
    return {
      numSamples: sum(this.#batches.map((batch) => batch.numSamples)),
      numTokens,
      lossNats: sum(this.#batches.map((batch) => batch.lossNats * batch.numTokens)) / numTokens,
    };
  }
}

/** The ranks' batches in the order in which they were dealt, so that the mean does not depend on the number of ranks. */
function inOrder(shares: readonly RankEvaluated[]): EvaluatedBatch[] {
  const rounds = Math.max(...shares.map((share) => share.batches.length));
  return Array.from({ length: rounds }, (_, round) =>
    shares.flatMap(({ batches }) => batches[round] ?? []),
  ).flat();
}

const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0);
