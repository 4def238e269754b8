import { arch, cpus } from "node:os";
import type { Convergence } from "./convergence.ts";
import { type Dimension, NUM_RANKS, type Sizes } from "./dimensions.ts";
import type { PeerResult, RowResult } from "./measure.ts";

/** The results of one table. */
export interface TableResult {
  readonly dimension: Omit<Dimension, "rows">;
  readonly size: Sizes;
  readonly rows: readonly RowResult[];
}

/** All results of a run of the tool. Plain data. */
export interface BenchResult {
  readonly machine: string;
  readonly sizeName: string;
  readonly tables: readonly TableResult[];
  readonly convergence: readonly Convergence[];
  readonly numSeeds: number;
  /** Time to measure all of it, in one run or several. */
  readonly seconds: number;
}

/** A column of a table: its name and its group. */
export interface Column {
  /** "" for columns without a group. */
  readonly of: string;
  readonly name: string;
}

/** The texts of a table, row by row, for any format of the report. */
export interface Table {
  readonly heading: string;
  /** Notes about it, a sentence each. */
  readonly notes: readonly string[];
  readonly columns: readonly Column[];
  readonly rows: readonly (readonly string[])[];
}

/** This machine's name in a report. */
export function machineName(): string {
  const all = cpus();
  return `${all.length} × ${all[0]?.model.trim() ?? arch()}, Node ${process.version}`;
}

/** Some columns, and a row's cells in them. */
interface Part {
  readonly columns: readonly Column[];
  readonly cells: (row: RowResult) => readonly string[];
  readonly notes: readonly string[];
}

/** The table of a dimension: measured, PyTorch's, planned and original numbers. */
function tableOf({ dimension, size, rows }: TableResult): Table {
  const { layers, width, heads, length, microBatch, batch } = size;
  const parts = [own(rows), ...peers(rows), ...plans(rows), original];
  return {
    heading: `Table ${dimension.letter}: ${dimension.title}`,
    notes: [
      `${layers} layers, width ${width}, ${heads} heads, ${length} tokens, micro-batch ${microBatch}, batch ${batch}, ${NUM_RANKS} ranks.`,
      ...(dimension.notes ?? []),
      ...parts.flatMap(({ notes }) => notes),
    ],
    columns: [{ of: "", name: "scheme" }, ...parts.flatMap(({ columns }) => columns)],
    rows: rows.map((result) => [result.row.name, ...parts.flatMap(({ cells }) => cells(result))]),
  };
}

function own(rows: readonly RowResult[]): Part {
  const plain = rows.find(({ measured }) => measured !== undefined)?.measured?.samplesPerSecond.mean ?? 1;
  return {
    columns: columnsOf("measured", ["samples/s", "×", "peak MB"]),
    cells: ({ measured, refusal }) =>
      measured === undefined
        ? [`refused: ${refusal}`, "", ""]
        : [
            spread(measured.samplesPerSecond),
            (measured.samplesPerSecond.mean / plain).toFixed(2),
            megabytes(measured.peakBytes),
          ],
    notes: [
      "Peak MB: peak of the tensors of all ranks together, by the ledger; the rest of the process (code, libtorch's caches, kernels' own workspaces) is not included, nor in the plan.",
    ],
  };
}

/** Columns of stock PyTorch, if asked for. */
function peers(rows: readonly RowResult[]): Part[] {
  const torch = rows.find(({ peer }) => peer !== undefined)?.peer?.torch;
  if (torch === undefined) return [];
  const columns = columnsOf("PyTorch", ["samples/s", "ours ×", "peak MB", "our share"]);
  const cells = ({ measured, peer }: RowResult) => {
    if (measured === undefined || peer === undefined) return ["", "", "", ""];
    if ("none" in peer) return [`no peer: ${peer.none}`, "", "", ""];
    return [
      spread(peer.samplesPerSecond),
      (measured.samplesPerSecond.mean / peer.samplesPerSecond.mean).toFixed(2),
      megabytes(peer.peakBytes),
      (measured.peakBytes / peer.peakBytes).toFixed(2),
    ];
  };
  const note = `PyTorch ${torch}: the same sizes and steps, a process with one thread per rank over gloo: DDP, ZeroRedundancyOptimizer, fully_shard, parallelize_module, Schedule1F1B, autocast; eager. Its peak MB: the sum of all ranks' peaks of tensors, by its allocator.`;
  return [{ columns, cells, notes: [note] }];
}

/** Columns of the planner's predictions, for tables that have some. */
function plans(rows: readonly RowResult[]): Part[] {
  const [first] = rows.flatMap(({ planned }) => (planned === undefined ? [] : [planned]));
  if (first === undefined) return [];
  return [
    {
      columns: columnsOf("planned", ["×", "MB", "original GB"]),
      cells: ({ planned }) =>
        planned === undefined
          ? ["", "", ""]
          : [
              (first.stepS / planned.stepS).toFixed(2),
              megabytes(planned.totalBytes),
              (planned.originalRankBytes / 2 ** 20 / 1000).toFixed(1),
            ],
      notes: [
        "Planned speed: the cost model's, relative to the first row, with one core per rank; planned GB: of a rank at the original's size.",
      ],
    },
  ];
}

const original: Part = {
  columns: columnsOf("original", ["samples/s", "GB"]),
  cells: ({ row: { published } }) => {
    const { samplesPerSecond: speed, megabytes: memory, instead = "" } = published;
    return [speed?.toFixed(2) ?? instead, memory === undefined ? instead : (memory / 1000).toFixed(1)];
  },
  notes: [],
};

function columnsOf(of: string, names: readonly string[]): Column[] {
  return names.map((name) => ({ of, name }));
}

function spread({ mean, deviation }: Extract<PeerResult, { peakBytes: number }>["samplesPerSecond"]): string {
  return `${mean.toFixed(1)} ± ${deviation.toFixed(1)}`;
}

/** The table of what strategies learn. */
function convergenceTable({ convergence, numSeeds }: BenchResult): Table {
  const steps = convergence[0]?.lossesNats.length ?? 0;
  return {
    heading: "Convergence: a small GPT on the letters of a text",
    notes: [
      `${steps} steps, ${numSeeds} seeds. The loss of the last tenth of the steps, in nats per letter, mean ± deviation over the seeds; and a seed's largest difference from one rank in single precision.`,
    ],
    columns: columnsOf("", ["strategy", "first loss", "last loss", "apart from one rank"]),
    rows: convergence.map(({ name, lossesNats, last, apart }, index) => [
      name,
      (lossesNats[0] ?? Number.NaN).toFixed(4),
      `${last.mean.toFixed(4)} ± ${last.deviation.toFixed(4)}`,
      index === 0 ? "" : apart === 0 ? "0" : apart.toExponential(1),
    ]),
  };
}

/** Every table of a result. */
export function tablesOf(result: BenchResult): Table[] {
  return [
    ...result.tables.map(tableOf),
    ...(result.convergence.length > 0 ? [convergenceTable(result)] : []),
  ];
}

/** A sentence with the machine, the sizes and the time. */
export function summaryOf({ machine, sizeName, seconds }: BenchResult): string {
  return `${machine}; sizes: ${sizeName}; ${Math.round(seconds)} s in all.`;
}

/**
 * The report as Markdown.
 * @param pictures - for each table the file of its picture
 */
export function markdownReport(result: BenchResult, pictures: readonly string[] = []): string {
  const sections = tablesOf(result).map(({ heading, notes, columns, rows }, index) => {
    const line = (cells: readonly string[]) =>
      `| ${cells.map((cell) => cell.replaceAll("|", "\\|")).join(" | ")} |`;
    const table = [
      // Columns of this machine's measurements need no group's name.
      line(columns.map(({ of, name }) => (of === "" || of === "measured" ? name : `${of}: ${name}`))),
      line(columns.map((_, column) => (column === 0 ? "---" : "---:"))),
      ...rows.map(line),
    ];
    const picture = pictures[index] === undefined ? [] : ["", `![${heading}](${pictures[index]})`];
    return [`## ${heading}`, "", ...notes, "", ...table, ...picture].join("\n");
  });
  return `# Benchmarks\n\n${summaryOf(result)}\n\n${sections.join("\n\n")}\n`;
}

const megabytes = (bytes: number) => (bytes / 1e6).toFixed(1);
