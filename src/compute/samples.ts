/** A batch that grows from `start` to `end` by `increment` while `samples` are consumed. Plain data. */
export interface RampUp {
  readonly start: number;
  readonly end: number;
  readonly increment: number;
  readonly samples: number;
}

/** The batch size in samples after `consumed` samples. */
export function rampedBatchSize({ start, end, increment, samples }: RampUp, consumed: number): number {
  if (consumed > samples) return end;
  const perIncrement = samples / ((end - start) / increment);
  return Math.min(end, start + Math.floor(consumed / perIncrement) * increment);
}

/** Samples consumed `steps` steps after `consumed`. */
export function samplesAfter(ramp: RampUp, consumed: number, steps: number): number {
  let taken = consumed;
  for (let step = 0; step < steps; step++) {
    if (taken > ramp.samples) return taken + (steps - step) * ramp.end;
    taken += rampedBatchSize(ramp, taken);
  }
  return taken;
}

/** Number of full steps that `numSamples` suffice for, as Megatron counts: those of the ramp, then full batches of the rest. */
export function stepsOfSamples(ramp: RampUp, numSamples: number): number {
  let [taken, steps] = [0, 0];
  while (taken <= ramp.samples) {
    taken += rampedBatchSize(ramp, taken);
    steps += 1;
  }
  return steps + Math.max(0, Math.floor((numSamples - taken) / ramp.end));
}

/**
 * The samples that each step takes from a run's endless sequence. Plain data. Every generation and every save of a run
 * computes positions from it, so that repeated steps take the same samples again.
 */
export interface SamplerState {
  /** The run's start: `numSamples` samples were taken before its step `step`. */
  readonly step: number;
  readonly numSamples: number;
  /** Samples per step; the final number for a growing batch. */
  readonly batchSize: number;
  /** How the batch grows. Default: it is constant. */
  readonly rampUp?: RampUp | undefined;
  /** Samples that are skipped, each entry before a step, in the order of steps. */
  readonly skips: readonly { readonly step: number; readonly numSamples: number }[];
}

/** Returns the number of samples before those of step `step` (from 0): the position of its first. */
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

/** Number of samples in a step. */
export function batchSizeAt(sampler: SamplerState, step: number): number {
  const { rampUp, batchSize } = sampler;
  return rampUp === undefined ? batchSize : rampedBatchSize(rampUp, samplesBefore(sampler, step));
}

/** Number of a replica's micro-batches in a step, all of one size. @param accumulation - number for a complete batch */
export function microBatchesAt(sampler: SamplerState, accumulation: number, step: number): number {
  return (accumulation * batchSizeAt(sampler, step)) / sampler.batchSize;
}

/**
 * The sampler state of a run that goes back from before step `from` to before step `to`, and skips the samples taken
 * between them: its next step takes those that step `from` would have.
 */
export function skipSamples(sampler: SamplerState, to: number, from: number): SamplerState {
  const numSamples = samplesBefore(sampler, from) - samplesBefore(sampler, to);
  // These include samples skipped within the discarded steps.
  const skips = sampler.skips.filter((skip) => skip.step <= to);
  return { ...sampler, skips: [...skips, { step: to, numSamples }] };
}
