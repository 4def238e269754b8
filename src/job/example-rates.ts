import type { Schedule } from "../compute/optim/index.ts";

/** Samples a schedule: its rates at all of the first steps, then at some of each doubling. */
export function exampleRates(schedule: Schedule): number[] {
  const rates: number[] = [];
  for (let step = 1; step < 2 ** 20; step += Math.max(1, 2 ** (Math.floor(Math.log2(step)) - 8)))
    rates.push(schedule.lrAt(step));
  return rates;
}
