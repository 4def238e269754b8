import type { Schedule } from "../compute/optim/index.ts";

/** @returns what a schedule comes to: its rates in all of the first steps, then in some of each doubling */
export function exampleRates(schedule: Schedule): number[] {
  const rates: number[] = [];
  for (let step = 1; step < 2 ** 20; step += Math.max(1, 2 ** (Math.floor(Math.log2(step)) - 8)))
    rates.push(schedule.lrAt(step));
  return rates;
}
