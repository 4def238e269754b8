import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { measureConvergence, ownText, SEEDS } from "./convergence.ts";
import { type BenchRow, type Dimension, dimensions, sizes } from "./dimensions.ts";
import type { KeptResults } from "./kept-results.ts";
import { measureRow, type PeerResult, type RowResult } from "./measure.ts";
import { measurePeer } from "./peer.ts";
import { type BenchResult, machineName, type TableResult } from "./report.ts";

/** Options of {@link runBench}. */
export interface BenchOptions {
  /** Tables to measure, and whether to compare what strategies learn. */
  readonly dimensions: readonly (Dimension["name"] | "convergence")[];
  readonly size: keyof typeof sizes;
  /** Windows per row, each of some steps; means and deviations are over them. */
  readonly windows: number;
  readonly stepsOfWindow: number;
  /** Steps of each convergence run; 0 for none. */
  readonly convergenceSteps: number;
  /** Text to train on there. Default: the package's README. */
  readonly text?: string | undefined;
  /** A Python with torch, to measure the rows with too. Default: none. */
  readonly peer?: string | undefined;
  /** Earlier results with the same settings: these are not measured again, and are part of the result, asked for or not. */
  readonly kept: KeptResults;
  /** Receives a line about each measurement before it starts. */
  readonly tell: (line: string) => void;
}

/** Measures the tables row by row in this process, then what strategies learn. */
export async function runBench(options: BenchOptions): Promise<BenchResult> {
  const { size, kept } = options;
  const tables: TableResult[] = [];
  for (const { rows, ...dimension } of dimensions) {
    const results: RowResult[] = [];
    for (const row of rows) {
      const result = await resultOf({ ...dimension, rows }, row, options);
      if (result !== undefined) results.push(result);
    }
    if (results.length > 0) tables.push({ dimension, size: sizes[size][dimension.subject], rows: results });
  }
  const convergence = await learnt(options);
  return {
    machine: machineName(),
    sizeName: size,
    tables,
    convergence,
    numSeeds: SEEDS.length,
    seconds: kept.seconds,
  };
}

async function resultOf(
  dimension: Dimension,
  row: BenchRow,
  options: BenchOptions,
): Promise<RowResult | undefined> {
  const { size, kept, tell, windows, stepsOfWindow, peer: python = "" } = options;
  const isAsked = options.dimensions.includes(dimension.name);
  const sizeOf = sizes[size][dimension.subject];
  const of = {
    machine: machineName(),
    ...{ table: dimension.letter, row: row.name, ...sizeOf, windows, stepsOfWindow },
  };
  const announced =
    <T>(words: string, measure: () => Promise<T>) =>
    () => {
      tell(`table ${dimension.letter}, ${row.name}${words}`);
      return measure();
    };
  const own = await kept.take<Omit<RowResult, "row">>(
    of,
    isAsked
      ? announced("", async () => {
          const { row: _, ...result } = await measureRow(dimension, row, sizeOf, options);
          return result;
        })
      : undefined,
  );
  if (own === undefined) return undefined;
  if (own.measured === undefined) return { row, ...own };
  const peer = await kept.take<PeerResult>(
    { ...of, peer: python },
    isAsked && python !== ""
      ? announced(", in PyTorch", () => measurePeer(python, dimension.subject, row, sizeOf, options))
      : undefined,
  );
  return { row, ...own, peer };
}

async function learnt({ dimensions, convergenceSteps: steps, text = ownText, kept, tell }: BenchOptions) {
  if (steps === 0) return [];
  const digest = createHash("sha256").update(readFileSync(text)).digest("hex").slice(0, 16);
  const isAsked = dimensions.includes("convergence");
  return measureConvergence({
    ...{ steps, text, tell },
    take: ({ name, seed }, measure) =>
      kept.take<readonly number[]>(
        { machine: machineName(), strategy: name, seed, steps, text: digest },
        isAsked ? measure : undefined,
      ),
  });
}
