import { median } from "../measure/median.ts";

/** Figures of one contestant, one a round. */
export type Rounds = number[];

/** Measures the contestants in turn, in another order each round, after rounds that only warm up. */
export async function interleave(
  contestants: readonly (() => Promise<number>)[],
  { numRounds, numWarmUp }: { readonly numRounds: number; readonly numWarmUp: number },
): Promise<Rounds[]> {
  const figures: Rounds[] = contestants.map(() => []);
  for (let round = -numWarmUp; round < numRounds; round++) {
    for (let turn = 0; turn < contestants.length; turn++) {
      const index = (turn + Math.abs(round)) % contestants.length;
      const figure = await (contestants[index] as () => Promise<number>)();
      if (round >= 0) figures[index]?.push(figure);
    }
  }
  return figures;
}

/** Median of the rounds' own ratios: what the machine did in one round falls on both of its figures. */
export function medianRatio(ours: Rounds, theirs: Rounds): number {
  return median(ours.map((figure, round) => figure / (theirs[round] as number)));
}

/** `12.3 [11.0 to 19.9]`. */
export function spread(values: readonly number[], digits = 1): string {
  const shown = [median(values), Math.min(...values), Math.max(...values)].map((value) =>
    value.toFixed(digits),
  );
  return `${shown[0]} [${shown[1]} to ${shown[2]}]`;
}

export function printLine(what: string, figure: string): void {
  console.log(`  ${what.padEnd(52)} ${figure}`);
}
