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
