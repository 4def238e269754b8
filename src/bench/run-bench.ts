import { measureConvergence, SEEDS } from "./convergence.ts";
import { type Dimension, dimensions, sizes } from "./dimensions.ts";
import { measureRow, type RowResult } from "./measure.ts";
import { measurePeer } from "./peer.ts";
import { type BenchResult, machineName, type TableResult } from "./report.ts";

/** What is measured. */
export interface BenchOptions {
  readonly dimensions: readonly Dimension["name"][];
  readonly size: keyof typeof sizes;
  /** Of a row, each of some steps; means and deviations are over them. */
  readonly windows: number;
  readonly stepsOfWindow: number;
  /** Steps of each run of the convergence; 0 for none. */
  readonly convergenceSteps: number;
  /** What is learnt there; the package's README unless told otherwise. */
  readonly text?: string | undefined;
  /** A Python with torch, whose rows are measured beside these; none unless told otherwise. */
  readonly peer?: string | undefined;
  /** Told what is measured next. */
  readonly tell: (line: string) => void;
}

/** Measures the tables asked for, row by row in this process, then what strategies learn. */
export async function runBench(options: BenchOptions): Promise<BenchResult> {
  const { size, convergenceSteps, text, tell } = options;
  const beganMs = performance.now();
  const tables: TableResult[] = [];
  for (const { rows, ...dimension } of dimensions.filter(({ name }) => options.dimensions.includes(name))) {
    const measured: RowResult[] = [];
    const sizeOf = sizes[size][dimension.subject];
    for (const row of rows) {
      tell(`table ${dimension.letter}, ${row.name}`);
      const own = await measureRow({ ...dimension, rows }, row, sizeOf, options);
      if (options.peer === undefined || own.measured === undefined) measured.push(own);
      else {
        tell(`table ${dimension.letter}, ${row.name}, in PyTorch`);
        const peer = await measurePeer(options.peer, dimension.subject, row, sizeOf, options);
        measured.push({ ...own, peer });
      }
    }
    tables.push({ dimension, size: sizeOf, rows: measured });
  }
  const convergence =
    convergenceSteps > 0 ? await measureConvergence({ steps: convergenceSteps, text, tell }) : [];
  return {
    machine: machineName(),
    sizeName: size,
    tables,
    convergence,
    numSeeds: SEEDS.length,
    seconds: (performance.now() - beganMs) / 1000,
  };
}
