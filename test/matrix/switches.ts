import { tmpdir } from "node:os";
import type { RuntimeOptions } from "../../src/entries/index.ts";

/** A switch: its options, and the results that it may change. */
export interface Switch {
  readonly name: string;
  /** Only one switch of a kind can be on. */
  readonly kind: string;
  readonly options?: RuntimeOptions;
  readonly config?: Readonly<Record<string, unknown>>;
  /** The job that is trained in place of the tiny GPT's. */
  readonly job?: URL;
  /**
   * "nothing": the same bits as without it. "order": sums are added in another order than on one rank. "mathematics":
   * something else is computed, on one rank too.
   */
  readonly changes: "nothing" | "order" | "mathematics";
  /** Names of switches with which this one is refused. */
  readonly without?: readonly string[];
  /** Whether it is refused on a device. */
  readonly isOfHost?: true;
}

/** Everything that can be composed, each with what it promises. */
export const switches: readonly Switch[] = [
  { name: "zero 1", kind: "zero", options: { zero: 1 }, changes: "nothing" },
  { name: "zero 2", kind: "zero", options: { zero: 2 }, changes: "nothing" },
  { name: "zero 3", kind: "zero", options: { zero: 3 }, changes: "nothing" },
  {
    name: "parameters nvme",
    kind: "zero",
    options: { zero: 3, offload: { parameters: "nvme", dir: tmpdir() }, prefetchBytes: 60_000 },
    changes: "nothing",
    isOfHost: true,
  },
  { name: "tp 2", kind: "tp", options: { tp: 2 }, changes: "order" },
  { name: "tp 2 sp", kind: "tp", options: { tp: 2, sequenceParallel: true }, changes: "order" },
  {
    name: "tp 2 sp overlapped",
    kind: "tp",
    options: { tp: 2, sequenceParallel: true, overlapChunks: 2 },
    changes: "order",
  },
  { name: "pp 2 1f1b", kind: "pp", options: { pp: 2 }, changes: "order" },
  { name: "pp 2 gpipe", kind: "pp", options: { pp: 2, schedule: "gpipe" }, changes: "order" },
  { name: "pp 2 × 2", kind: "pp", options: { pp: 2, chunks: 2 }, changes: "order" },
  { name: "ep 2", kind: "ep", options: { ep: 2 }, config: { experts: 4 }, changes: "mathematics" },
  { name: "bf16", kind: "precision", options: { precision: "bf16" }, changes: "mathematics" },
  {
    name: "bf16 stochastic",
    kind: "precision",
    options: { precision: "bf16", rounding: "stochastic" },
    changes: "mathematics",
  },
  { name: "fp16", kind: "precision", options: { precision: "fp16" }, changes: "mathematics" },
  { name: "amp-bf16", kind: "precision", options: { precision: "amp-bf16" }, changes: "mathematics" },
  // A power of two: exact in float32.
  { name: "loss scale 1024", kind: "precision", options: { lossScale: 1024 }, changes: "nothing" },
  { name: "recompute", kind: "recompute", options: { recompute: true }, changes: "nothing" },
  { name: "accumulate 2", kind: "accumulation", config: { accumulation: 2 }, changes: "order" },
  { name: "processes", kind: "placement", options: { placement: "process" }, changes: "nothing" },
  {
    name: "gloo",
    kind: "placement",
    options: { placement: "process", carrier: "gloo" },
    changes: "nothing",
    without: ["parameters nvme"],
  },
  { name: "offload host", kind: "offload", options: { offload: { optimizer: "host" } }, changes: "nothing" },
  {
    name: "offload half",
    kind: "offload",
    options: { offload: { optimizer: "host", ratio: 0.5 } },
    changes: "nothing",
  },
  {
    name: "offload nvme",
    kind: "offload",
    options: { offload: { optimizer: "nvme", dir: tmpdir() } },
    changes: "nothing",
  },
  { name: "clip inf", kind: "clip", config: { clipBy: "inf" }, changes: "mathematics" },
  { name: "dropout", kind: "dropout", config: { dropout: 0.1 }, changes: "mathematics" },
  { name: "clip value", kind: "clip", config: { clipBy: "value", clipNorm: 1e-2 }, changes: "mathematics" },
  { name: "no clip", kind: "clip", config: { clipNorm: 0 }, changes: "mathematics" },
  { name: "weighed alike", kind: "weights", config: { weigh: "alike" }, changes: "nothing" },
  { name: "ragged targets", kind: "weights", config: { weigh: "targets" }, changes: "mathematics" },
  {
    name: "own loop",
    kind: "loop",
    job: new URL("../fixtures/jobs/tiny-loop.ts", import.meta.url),
    changes: "nothing",
  },
  { name: "graph exact", kind: "graph", options: { graph: "exact" }, changes: "nothing" },
  {
    name: "invariant",
    kind: "invariance",
    options: { invariant: true },
    changes: "order",
    without: ["ep 2", "graph exact"],
  },
  { name: "gather on demand", kind: "prefetch", options: { prefetchBytes: 0 }, changes: "nothing" },
];

/** @returns every two switches that can be on together */
export function pairs(of: readonly Switch[] = switches): (readonly [Switch, Switch])[] {
  return of.flatMap((first, index) =>
    of.slice(index + 1).flatMap((second) => (fit(first, second) ? [[first, second] as const] : [])),
  );
}

function fit(first: Switch, second: Switch): boolean {
  const { without = [] } = first;
  const { without: others = [] } = second;
  return first.kind !== second.kind && !without.includes(second.name) && !others.includes(first.name);
}
