import { type RampUp, rampedBatchSize, samplesAfter } from "../../compute/batch-ramp.ts";

/**
 * Which samples of a run's endless sequence each step takes. Plain data. Every generation of a run and every save asks it for
 * positions, so that what is repeated after a loss takes the samples that it took before.
 */
export interface SamplerState {
  /** Where the run begins: `numSamples` had been taken before its step `step`. */
  readonly step: number;
  readonly numSamples: number;
  /** Samples of one step; of a batch that grows, in the end. */
  readonly batchSize: number;
  /** How the batch grows. Default: it does not. */
  readonly rampUp?: RampUp | undefined;
  /** Samples that are left out, each before a step is made, in the order of steps. */
  readonly skips: readonly { readonly step: number; readonly numSamples: number }[];
}

/** @returns samples that are behind a run before it makes its step `step` (counted from 0): the first that it takes */
export function samplesBefore(sampler: SamplerState, step: number): number {
  const { step: first, numSamples, batchSize, skips, rampUp } = sampler;
  if (rampUp !== undefined) {
    const before = skips.filter((skip) => skip.step <= step);
    const begun = before.reduce(
      ({ at, taken }, skip) => ({
        at: skip.step,
        taken: samplesAfter(rampUp, taken, skip.step - at) + skip.numSamples,
      }),
      { at: first, taken: numSamples },
    );
    return samplesAfter(rampUp, begun.taken, step - begun.at);
  }
  const skipped = skips
    .filter((skip) => skip.step <= step)
    .reduce((total, skip) => total + skip.numSamples, 0);
  return numSamples + (step - first) * batchSize + skipped;
}

/** Samples that a step takes. */
export function batchSizeAt(sampler: SamplerState, step: number): number {
  const { rampUp, batchSize } = sampler;
  return rampUp === undefined ? batchSize : rampedBatchSize(rampUp, samplesBefore(sampler, step));
}

/**
 * Micro-batches of one replica in a step, which are all of one size.
 * @param accumulation - those of a whole batch
 */
export function microBatchesAt(sampler: SamplerState, accumulation: number, step: number): number {
  return (accumulation * batchSizeAt(sampler, step)) / sampler.batchSize;
}

/**
 * A run that goes back from before step `from` to before step `to`, and leaves out the samples that it had taken between
 * them: its next step takes what step `from` would have.
 */
export function passOver(sampler: SamplerState, to: number, from: number): SamplerState {
  const numSamples = samplesBefore(sampler, from) - samplesBefore(sampler, to);
  // What was left out on the way that is given up is among them.
  const skips = sampler.skips.filter((skip) => skip.step <= to);
  return { ...sampler, skips: [...skips, { step: to, numSamples }] };
}
