import { arch, cpus } from "node:os";
import type { Convergence } from "./convergence.ts";
import { type Dimension, NUM_RANKS, type Sizes } from "./dimensions.ts";
import type { PeerResult, RowResult } from "./measure.ts";

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
  /** What all of it took, in one run or in several. */
  readonly seconds: number;
}

/** A column of a table: what its numbers are, and whose. */
export interface Column {
  /** "" of what is no one's. */
  readonly of: string;
  readonly name: string;
}

/** A table's words, row by row; of whatever the report is written in. */
export interface Table {
  readonly heading: string;
  /** What it is about, a sentence each. */
  readonly notes: readonly string[];
  readonly columns: readonly Column[];
  readonly rows: readonly (readonly string[])[];
}

/** What this machine is called in a report. */
export function machineName(): string {
  const all = cpus();
  return `${all.length} × ${all[0]?.model.trim() ?? arch()}, Node ${process.version}`;
}

/** Some columns, and what a row says in them. */
interface Part {
  readonly columns: readonly Column[];
  readonly cells: (row: RowResult) => readonly string[];
  readonly notes: readonly string[];
}

/** The table of a dimension: what was measured, what PyTorch made of it, what was planned, and what the original prints. */
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
      "Peak MB: tensors of all ranks together, at most at one moment, by the ledger; the process besides (code, libtorch's caches, kernels' own workspaces) is not in it, nor in what is planned.",
    ],
  };
}

/** Stock PyTorch beside, where it was asked for. */
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
  const note = `PyTorch ${torch}: the same sizes and steps, a process of one thread a rank over gloo: DDP, ZeroRedundancyOptimizer, fully_shard, parallelize_module, Schedule1F1B, autocast; eager. Its peak MB: tensors of all ranks, each at its own most, by its allocator.`;
  return [{ columns, cells, notes: [note] }];
}

/** What the planner said before anything ran, of tables that it has something to say of. */
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
        "Planned speed is that of the cost model as a ratio to the first row's, with a core a rank; planned GB of a rank at the original's size.",
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
      `${steps} steps, ${numSeeds} seeds. The loss of the last tenth of the steps, in nats a letter, mean ± deviation over the seeds; and how far a seed's is at most from one rank's in single precision.`,
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

/** What was measured on what, and how long it took: a sentence. */
export function summaryOf({ machine, sizeName, seconds }: BenchResult): string {
  return `${machine}; sizes: ${sizeName}; ${Math.round(seconds)} s in all.`;
}

/** The report as Markdown. `pictures`: of each table the file of its picture. */
export function markdownReport(result: BenchResult, pictures: readonly string[] = []): string {
  const sections = tablesOf(result).map(({ heading, notes, columns, rows }, index) => {
    const line = (cells: readonly string[]) =>
      `| ${cells.map((cell) => cell.replaceAll("|", "\\|")).join(" | ")} |`;
    const table = [
      // What was measured here is what a reader looks for, and needs no name.
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
