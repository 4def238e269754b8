import type { RuntimeOptions } from "../../src/actors/trainer/index.ts";

/** The model of a table. */
export type Subject = "bert" | "gpt" | "classifier";

/** Sizes of a model and its batches. */
export interface Sizes {
  readonly layers: number;
  readonly width: number;
  readonly heads: number;
  readonly vocab: number;
  readonly length: number;
  /** Samples in one forward of one replica, and in a step. */
  readonly microBatch: number;
  readonly batch: number;
}

/** A row in the original document: samples per second and MB per GPU; undefined where it has NA or OOM. */
export interface Published {
  readonly samplesPerSecond: number | undefined;
  readonly megabytes: number | undefined;
  /** Its text in place of numbers. */
  readonly instead?: string;
}

/** One row of a table: its name, its options, and the original's numbers. */
export interface BenchRow {
  readonly name: string;
  readonly options: RuntimeOptions;
  readonly published: Published;
  /** Whether its forward uses only libtorch's own operators, without fused kernels. */
  readonly unfused?: true;
  /** Whether its layout is refused, which is its result. */
  readonly isRefused?: true;
}

/** One table of the original document. */
export interface Dimension {
  readonly name: "precision" | "sharding" | "parallel" | "graph";
  readonly letter: string;
  readonly title: string;
  readonly subject: Subject;
  /** Notes for the reader, a sentence each. */
  readonly notes?: readonly string[];
  readonly rows: readonly BenchRow[];
}

/** By name: sizes that take two cores minutes, and those of the original, for larger machines. */
export const sizes: Readonly<Record<"small" | "original", Readonly<Record<Subject, Sizes>>>> = {
  small: {
    bert: { layers: 2, width: 128, heads: 4, vocab: 1024, length: 64, microBatch: 4, batch: 16 },
    gpt: { layers: 4, width: 128, heads: 4, vocab: 1024, length: 64, microBatch: 2, batch: 8 },
    classifier: { layers: 2, width: 128, heads: 4, vocab: 1024, length: 64, microBatch: 4, batch: 16 },
  },
  original: {
    bert: { layers: 12, width: 768, heads: 12, vocab: 30522, length: 512, microBatch: 16, batch: 64 },
    gpt: { layers: 24, width: 2048, heads: 32, vocab: 50304, length: 1024, microBatch: 1, batch: 4 },
    classifier: { layers: 12, width: 768, heads: 12, vocab: 30522, length: 128, microBatch: 16, batch: 64 },
  },
};

/** Ranks in every row. */
export const NUM_RANKS = 4;

const printed = (samplesPerSecond: number, megabytes: number): Published => ({ samplesPerSecond, megabytes });
const notPrinted = (instead: string): Published => ({
  samplesPerSecond: undefined,
  megabytes: undefined,
  instead,
});

const amp = { precision: "amp-bf16" } as const;
const layout = (tp: number, pp: number, published: Published): BenchRow => ({
  name: `TP ${tp}, PP ${pp}`,
  options: { ...amp, zero: 0, tp, pp },
  published,
});

/** Tables A to D of the original, with its rows in its order. */
export const dimensions: readonly Dimension[] = [
  {
    name: "precision",
    letter: "A",
    title: "Mixed precision: BERT, pre-training",
    subject: "bert",
    rows: [
      { name: "single precision", options: { zero: 0 }, published: printed(103.07, 17025) },
      { name: "mixed precision", options: { ...amp, zero: 0 }, published: printed(178.15, 12698) },
    ],
  },
  {
    name: "sharding",
    letter: "B",
    title: "Sharded states: Megatron's GPT, pre-training",
    subject: "gpt",
    rows: [
      { name: "none", options: { zero: 0 }, published: notPrinted("OOM") },
      { name: "mixed", options: { ...amp, zero: 0 }, published: printed(9.57, 25061) },
      { name: "mixed + oss", options: { ...amp, zero: "oss" }, published: printed(6.02, 22077) },
      { name: "mixed + oss/sdp", options: { ...amp, zero: "sdp" }, published: printed(7.01, 17113) },
      { name: "mixed + fsdp", options: { ...amp, zero: "fsdp" }, published: notPrinted("NA") },
      { name: "mixed + ZeRO 1", options: { ...amp, zero: 1 }, published: printed(12.88, 15709) },
      { name: "mixed + ZeRO 2", options: { ...amp, zero: 2 }, published: printed(10.27, 15693) },
      { name: "mixed + ZeRO 3", options: { ...amp, zero: 3 }, published: notPrinted("NA") },
    ],
  },
  {
    name: "parallel",
    letter: "C",
    title: "Tensor and pipeline parallelism: Megatron's GPT, pre-training",
    subject: "gpt",
    rows: [
      layout(1, 1, printed(9.63, 25061)),
      layout(2, 1, printed(7.59, 11300)),
      layout(4, 1, printed(6.16, 5673)),
      layout(1, 2, printed(8.46, 12375)),
      layout(1, 4, printed(8.03, 8141)),
      layout(2, 2, printed(7.37, 6211)),
      // Megatron silently used as many stages as GPUs were left: its row is that of TP 4, PP 1.
      { ...layout(4, 4, printed(6.24, 5673)), isRefused: true },
    ],
  },
  {
    name: "graph",
    letter: "D",
    title: "Graph optimisation: BERT, fine-tuning",
    subject: "classifier",
    notes: [
      "Graph: fused kernels for norms, attention, activations and losses, as in every other run; the rows without it use libtorch's own operators. Updates are fused in all rows.",
    ],
    rows: [
      {
        name: "single precision",
        options: { zero: 0 },
        published: printed(479.15, 2112),
        unfused: true,
      },
      { name: "mixed", options: { ...amp, zero: 0 }, published: printed(589.66, 2127), unfused: true },
      { name: "graph", options: { zero: 0 }, published: printed(554.24, 2430) },
      { name: "graph + mixed", options: { ...amp, zero: 0 }, published: printed(614.7, 2289) },
    ],
  },
];
