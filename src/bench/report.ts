import { arch, cpus } from "node:os";
import type { Convergence } from "./convergence.ts";
import { type Dimension, NUM_RANKS, type Sizes } from "./dimensions.ts";
import type { RowResult } from "./measure.ts";

/** One table as it came out. */
export interface TableResult {
  readonly dimension: Omit<Dimension, "rows">;
  readonly size: Sizes;
  readonly rows: readonly RowResult[];
}

/** All that a run of the tool measured. Plain data. */
export interface BenchResult {
  readonly machine: string;
  readonly sizeName: string;
  readonly tables: readonly TableResult[];
  readonly convergence: readonly Convergence[];
  readonly numSeeds: number;
  readonly seconds: number;
}

/** A table's words, row by row, the headings first; of whatever the report is written in. */
export interface Table {
  readonly heading: string;
  /** What it is about, a sentence each. */
  readonly notes: readonly string[];
  readonly rows: readonly (readonly string[])[];
}

/** What this machine is called in a report. */
export function machineName(): string {
  const all = cpus();
  return `${all.length} × ${all[0]?.model.trim() ?? arch()}, Node ${process.version}`;
}

/** The table of a dimension: what was measured, what was planned, and what the original prints. */
export function tableOf({ dimension, size, rows }: TableResult): Table {
  const [first] = rows.flatMap(({ measured, planned }) =>
    measured && planned ? [{ measured, planned }] : [],
  );
  const plain = rows.find(({ measured }) => measured !== undefined)?.measured;
  const { layers, width, heads, length, microBatch, batch } = size;
  const torch = rows.find(({ peer }) => peer !== undefined)?.peer?.torch;
  return {
    heading: `Table ${dimension.letter}: ${dimension.title}`,
    notes: [
      `${layers} layers, width ${width}, ${heads} heads, ${length} tokens, micro-batch ${microBatch}, batch ${batch}, ${NUM_RANKS} ranks.`,
      "Peak MB: tensors of all ranks together, at most at one moment, by the ledger; the process besides (code, libtorch's caches, kernels' own workspaces) is not in it, nor in what is planned.",
      ...(dimension.notes ?? []),
      ...(torch === undefined
        ? []
        : [
            `PyTorch ${torch}: the same sizes and steps, a process of one thread a rank over gloo: DDP, ZeroRedundancyOptimizer, fully_shard, autocast; eager. It has tensor and pipeline parallelism only for models that are written for them.`,
          ]),
      ...(first === undefined
        ? []
        : [
            "Planned speed is that of the cost model as a ratio to the first row's; planned GB of the original's size, a rank.",
          ]),
    ],
    rows: [
      [
        "scheme",
        "samples/s",
        "×",
        "peak MB",
        ...(torch ? ["PyTorch samples/s", "× PyTorch"] : []),
        ...(first ? ["planned ×", "planned MB", "original planned GB"] : []),
        "original samples/s",
        "original GB",
      ],
      ...rows.map(({ row, measured, planned, peer, refusal }) => {
        const { samplesPerSecond: speed, megabytes: memory, instead = "" } = row.published;
        const originals = [
          speed?.toFixed(2) ?? instead,
          memory === undefined ? instead : (memory / 1000).toFixed(1),
        ];
        const own =
          measured === undefined
            ? [`refused: ${refusal}`, "", ""]
            : [
                `${measured.samplesPerSecond.mean.toFixed(1)} ± ${measured.samplesPerSecond.deviation.toFixed(1)}`,
                (measured.samplesPerSecond.mean / (plain?.samplesPerSecond.mean ?? 1)).toFixed(2),
                megabytes(measured.peakBytes),
              ];
        const plans =
          first === undefined
            ? []
            : planned === undefined
              ? ["", "", ""]
              : [
                  (first.planned.stepS / planned.stepS).toFixed(2),
                  megabytes(planned.totalBytes),
                  (planned.originalRankBytes / 2 ** 20 / 1000).toFixed(1),
                ];
        const speedOfPeer = peer?.samplesPerSecond;
        const beside =
          torch === undefined
            ? []
            : measured === undefined || speedOfPeer === undefined
              ? ["", ""]
              : [
                  `${speedOfPeer.mean.toFixed(1)} ± ${speedOfPeer.deviation.toFixed(1)}`,
                  (measured.samplesPerSecond.mean / speedOfPeer.mean).toFixed(2),
                ];
        return [row.name, ...own, ...beside, ...plans, ...originals];
      }),
    ],
  };
}

/** The table of what strategies learn. */
export function convergenceTable({ convergence, numSeeds }: BenchResult): Table {
  const steps = convergence[0]?.lossesNats.length ?? 0;
  return {
    heading: "Convergence: a small GPT on the letters of a text",
    notes: [
      `${steps} steps, ${numSeeds} seeds. The loss of the last tenth of the steps, in nats a letter, mean ± deviation over the seeds; and how far a seed's is at most from one rank's in single precision.`,
    ],
    rows: [
      ["strategy", "first loss", "last loss", "apart from one rank"],
      ...convergence.map(({ name, lossesNats, last, apart }, index) => [
        name,
        (lossesNats[0] ?? Number.NaN).toFixed(4),
        `${last.mean.toFixed(4)} ± ${last.deviation.toFixed(4)}`,
        index === 0 ? "" : apart === 0 ? "0" : apart.toExponential(1),
      ]),
    ],
  };
}

/** Every table of a result. */
export function tablesOf(result: BenchResult): Table[] {
  return [
    ...result.tables.map(tableOf),
    ...(result.convergence.length > 0 ? [convergenceTable(result)] : []),
  ];
}

/** The report as Markdown. `pictures`: of each table the file of its picture. */
export function markdownReport(result: BenchResult, pictures: readonly string[] = []): string {
  const sections = tablesOf(result).map(({ heading, notes, rows }, index) => {
    const [head = [], ...body] = rows;
    const line = (cells: readonly string[]) =>
      `| ${cells.map((cell) => cell.replaceAll("|", "\\|")).join(" | ")} |`;
    const table = [
      line(head),
      line(head.map((_, column) => (column === 0 ? "---" : "---:"))),
      ...body.map(line),
    ];
    const picture = pictures[index] === undefined ? [] : ["", `![${heading}](${pictures[index]})`];
    return [`## ${heading}`, "", ...notes, "", ...table, ...picture].join("\n");
  });
  return `# Benchmarks\n\n${result.machine}; sizes: ${result.sizeName}; ${Math.round(result.seconds)} s in all.\n\n${sections.join("\n\n")}\n`;
}

export const megabytes = (bytes: number) => (bytes / 1e6).toFixed(1);
