import type { RuntimeOptions } from "../../src/entries/index.ts";
import { lossesOf, type Workspace } from "../fixtures/run-tiny.ts";

/** A way to spread a family's run over ranks. */
export interface Column {
  readonly name: string;
  readonly options: RuntimeOptions & { readonly ranks: number };
  /** Which families it is for; all unless given. */
  readonly only?: RegExp;
}

/** The result of a family under a column. */
export interface Cell {
  readonly family: string;
  readonly column: string;
  /** Why the run failed, if it did. */
  readonly failure: string | undefined;
  /** Largest difference of a loss to one rank's that makes the same micro-batches, in nats; 0 is the same bits. */
  readonly deviationNats: number;
  readonly toleranceNats: number;
}

const two = { ranks: 2 } as const;

export const columns: readonly Column[] = [
  { name: "tp 2", options: { ...two, tp: 2 } },
  { name: "tp 2, sequence", options: { ...two, tp: 2, sequenceParallel: true } },
  { name: "pp 2", options: { ...two, pp: 2 } },
  { name: "ep 2", options: { ...two, ep: 2 }, only: /experts/ },
  { name: "ZeRO 0", options: { ...two, zero: 0 } },
  { name: "ZeRO 1", options: { ...two, zero: 1 } },
  { name: "ZeRO 2", options: { ...two, zero: 2 } },
  { name: "ZeRO 3", options: { ...two, zero: 3 } },
  { name: "recomputed", options: { ...two, zero: 3, recompute: true } },
  { name: "offloaded", options: { ...two, zero: 3, offload: { optimizer: "host" } } },
  { name: "bf16", options: { ...two, zero: 3, precision: "bf16" } },
  { name: "fp16", options: { ...two, zero: 3, precision: "fp16" } },
  { name: "processes", options: { ...two, zero: 3, placement: "process" } },
];

const job = new URL("../fixtures/jobs/family.ts", import.meta.url);
const STEPS = 4;
/** Two micro-batches a step, made by two replicas, by two stages one after the other, or by one rank. */
const NUM_MICRO_BATCHES = 2;
/** The order of sums alone, some 1e-7 a step, which four steps of training let grow. */
const TOLERANCE_NATS = 1e-5;

/** Trains a family under a column, and one rank in the same precision. */
export async function tryCell(workspace: Workspace, family: string, column: Column): Promise<Cell> {
  const { tp = 1, pp = 1, precision, ranks } = column.options;
  const replicas = ranks / (tp * pp);
  const one = { ranks: 1, zero: 0, steps: STEPS, ...(precision && { precision }) } as const;
  const cell = { family, column: column.name, toleranceNats: TOLERANCE_NATS };
  try {
    const config = { family, accumulation: NUM_MICRO_BATCHES / replicas };
    const losses = await lossesOf(workspace, { ...column.options, steps: STEPS }, config, job);
    const alone = await lossesOf(workspace, one, { family, accumulation: NUM_MICRO_BATCHES }, job);
    const differences = alone.map((loss, step) => Math.abs(loss - (losses[step] ?? Number.NaN)));
    return { ...cell, failure: undefined, deviationNats: Math.max(...differences) };
  } catch (error) {
    return { ...cell, failure: (error as Error).message, deviationNats: Number.NaN };
  }
}

/** @returns whether a cell is what it promises */
export function cellHolds({ failure, deviationNats, toleranceNats }: Cell): boolean {
  return failure === undefined && deviationNats <= toleranceNats;
}

/** The docs' page of all cells. */
export function familiesPage(cells: readonly Cell[]): string {
  const families = [...new Set(cells.map(({ family }) => family))];
  const names = columns.map(({ name }) => name);
  const text = (family: string, column: string) => {
    const cell = cells.find((each) => each.family === family && each.column === column);
    if (cell === undefined) return "–";
    if (cell.failure !== undefined) return "refused";
    return cell.deviationNats === 0 ? "=" : cell.deviationNats.toExponential(0);
  };
  const head = ["family", ...names];
  const body = families.map((family) => [family, ...names.map((name) => text(family, name))]);
  const widths = head.map((_, at) => Math.max(...[head, ...body].map((row) => row[at]?.length ?? 0)));
  const rows = [head, widths.map((width) => "-".repeat(width)), ...body];
  const line = (row: readonly string[]) =>
    `| ${row.map((text, at) => text.padEnd(widths[at] ?? 0)).join(" | ")} |`;
  return `# Families and parallelism

Written by \`npm run matrix -- --families\`, which trains every cell: ${STEPS} steps of a tiny model of the family, two layers of width 32. Two ranks
train it, beside one rank in the same precision with the same two micro-batches a step.

\`=\` means that every loss has the bits of the one rank. A number is the largest difference of a loss, in nats: a split layer or sum is added in
another order. \`–\` means that there are no experts. ZeRO 3 is on with recomputation, offload (the optimizer's state, to the host), bf16, fp16 and
processes.

${rows.map(line).join("\n")}
`;
}
