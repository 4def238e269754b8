import { TroupeError } from "../../../errors/index.ts";

/**
 * Cuts a list of blocks into stages of consecutive blocks so that the costliest stage costs as little as possible, and then the
 * others are as even as possible. Blocks of equal cost are dealt as in Megatron and BMTrain: stage s gets ⌊n / S⌋ + (s < n mod
 * S) of them.
 * @param costs - of each block along the model, in any unit: FLOPs, parameters, milliseconds
 * @param numStages - virtual ones: stages × chunks
 * @returns each block's virtual stage, not decreasing, every stage at least once
 * @throws {TroupeError} `PIPELINE_STAGES` for fewer blocks than stages, or a cost that is not a number ≥ 0
 */
export function stageOfBlocks(costs: readonly number[], numStages: number): readonly number[] {
  if (!Number.isSafeInteger(numStages) || numStages < 1 || numStages > costs.length)
    throw refusal(`from 1 to ${costs.length} stages for ${costs.length} blocks`, numStages);
  const odd = costs.find((cost) => !(Number.isFinite(cost) && cost >= 0));
  if (odd !== undefined) throw refusal("costs of blocks that are numbers ≥ 0", odd);
  const starts = evenestStarts(costs, numStages);
  return costs.map((_, block) => starts.findLastIndex((start) => start <= block));
}

/** Calls of blocks as they are dealt to stages. */
export interface DealtCalls {
  /** By call: its virtual stage. */
  readonly virtualStageOf: readonly number[];
  /** @returns the virtual stage that computes the part after `numCalls` calls, up to the next call or the model's end */
  stageAfter(numCalls: number): number;
}

/**
 * Deals calls of blocks to stages as {@link stageOfBlocks} does. With one call less than stages, the part after the last call,
 * a norm and an output layer, is a stage of its own.
 */
export function dealCalls(costs: readonly number[], numStages: number): DealtCalls {
  const hasOwnEnd = costs.length > 0 && costs.length + 1 === numStages;
  const virtualStageOf = stageOfBlocks(hasOwnEnd ? [...costs, 0] : costs, numStages).slice(0, costs.length);
  return {
    virtualStageOf,
    stageAfter: (numCalls) =>
      numCalls >= costs.length ? numStages - 1 : (virtualStageOf[Math.max(0, numCalls - 1)] ?? 0),
  };
}

/** Sums of costs differ in their last bits by the order of addition; what is closer than this is equal. */
const TOLERANCE = 1e-9;

/** The first block of each stage: the least sum of squares among the cuts whose maximum is the least. */
function evenestStarts(costs: readonly number[], numStages: number): number[] {
  const before = [0];
  for (const cost of costs) before.push((before.at(-1) as number) + cost);
  const total = (before.at(-1) as number) || 1;
  const stageCost = (begin: number, end: number) => (before[end] as number) - (before[begin] as number);
  const maximum = optimum(costs.length, numStages, (begin, end, rest) =>
    Math.max(stageCost(begin, end), rest),
  );
  const limit = (maximum.value as number) + TOLERANCE * total;
  // Mean squares, so that the tolerance of a comparison does not depend on the unit.
  const evenest = optimum(
    costs.length,
    numStages,
    (begin, end, rest) => {
      const cost = stageCost(begin, end);
      return cost > limit ? Number.POSITIVE_INFINITY : (cost / total) ** 2 + rest;
    },
    TOLERANCE,
  );
  return evenest.starts;
}

/**
 * Dynamic programming over suffixes: the cut of `numBlocks` into `numStages` of least value, where a stage's blocks and
 * the value of what follows make the value of both. Of equal cuts, the one whose earlier stages are longer.
 */
function optimum(
  numBlocks: number,
  numStages: number,
  value: (begin: number, end: number, rest: number) => number,
  tolerance = 0,
): { readonly value: number; readonly starts: number[] } {
  // best[s][b]: of cutting the blocks from b on into s stages; next[s][b]: where the second of them begins.
  const best = [new Array<number>(numBlocks + 1).fill(Number.POSITIVE_INFINITY)];
  const next: number[][] = [[]];
  (best[0] as number[])[numBlocks] = 0;
  for (let stages = 1; stages <= numStages; stages++) {
    const row = new Array<number>(numBlocks + 1).fill(Number.POSITIVE_INFINITY);
    const ends = new Array<number>(numBlocks + 1).fill(numBlocks);
    for (let begin = 0; begin < numBlocks; begin++) {
      for (let end = begin + 1; end <= numBlocks; end++) {
        const rest = best[stages - 1]?.[end] as number;
        if (rest === Number.POSITIVE_INFINITY) continue;
        const candidate = value(begin, end, rest);
        if (candidate <= (row[begin] as number) + tolerance) {
          row[begin] = Math.min(candidate, row[begin] as number);
          ends[begin] = end;
        }
      }
    }
    best.push(row);
    next.push(ends);
  }
  const starts = [0];
  for (let stages = numStages; stages > 1; stages--)
    starts.push(next[stages]?.[starts.at(-1) as number] as number);
  return { value: best[numStages]?.[0] as number, starts };
}

function refusal(expected: string, got: number): TroupeError {
  return new TroupeError("PIPELINE_STAGES", { where: "pipeline", expected, got: `${got}`, fields: { got } });
}
