import type { SampleRange } from "../library/data/index.ts";
import { type LossWeights, sharesOf } from "./loss-weights.ts";

/** A step's samples, as consecutive batches of one size. */
export interface StepSamples {
  /** Its first sample, counted over the run. */
  readonly position: number;
  /** Micro-batches of all replicas. */
  readonly numBatches: number;
}

/** Steps whose shares are kept: ranks ask for few batches ahead of the slowest. */
const NUM_KEPT = 8;

/** Shares of the batches of each step: one depends on the weights of the others, so all are weighed with the first. */
export class StepShares {
  readonly #weigh: (range: SampleRange) => Promise<LossWeights>;
  /** By position of the first sample, oldest first. */
  readonly #steps = new Map<string, Promise<LossWeights[]>>();

  /** @param weigh - weighs one batch: a pure function of its samples */
  constructor(weigh: (range: SampleRange) => Promise<LossWeights>) {
    this.#weigh = weigh;
  }

  /** Returns the share of one batch, see {@link sharesOf}. @throws errors of weighing a batch of the step */
  async of(step: StepSamples, batch: SampleRange): Promise<LossWeights> {
    const key = `${batch.split} ${step.position} ${step.numBatches} ${batch.numSamples}`;
    const known = this.#steps.get(key);
    const shares = known ?? this.#sharesOf(step, batch);
    if (known === undefined) this.#keep(key, shares);
    const index = (batch.position - step.position) / batch.numSamples;
    return (await shares)[index] as LossWeights;
  }

  async #sharesOf(
    { position, numBatches }: StepSamples,
    { split, numSamples }: SampleRange,
  ): Promise<LossWeights[]> {
    const weights: LossWeights[] = [];
    for (let index = 0; index < numBatches; index++)
      weights.push(await this.#weigh({ split, position: position + index * numSamples, numSamples }));
    return sharesOf(weights);
  }

  #keep(key: string, shares: Promise<LossWeights[]>): void {
    this.#steps.set(key, shares);
    for (const oldest of this.#steps.keys()) {
      if (this.#steps.size <= NUM_KEPT) break;
      this.#steps.delete(oldest);
    }
  }
}
