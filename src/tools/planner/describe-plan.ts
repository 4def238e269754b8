import type { Layout } from "../../compute/parallel/index.ts";
import { formatBytes } from "../../job/events/index.ts";
import type { Estimate } from "./cost/estimate.ts";
import type { RankMemory } from "./cost/plan-memory.ts";
import type { Simulation } from "./simulation/simulate.ts";
import type { Suggestion } from "./suggest.ts";
import { table } from "./table.ts";

// biome-ignore format: a list
const KINDS = [
  "parameters", "master", "optimizer", "gradients", "activations", "gathered", "workspace",
] as const;

/** Writes a layout for people: `tp 2 · pp 4 · dp 4, ZeRO 1, 256 samples in 16 micro-batches`. */
export function describeLayout(layout: Layout): string {
  const { ranks, tp, pp, zero, batchSize, accumulation, schedule, chunks } = layout;
  const turns = chunks > 1 ? ` × ${chunks}` : "";
  const order = pp > 1 ? `, ${schedule}${turns}` : "";
  const batch = `${batchSize} samples in ${accumulation} micro-batch${accumulation === 1 ? "" : "es"}`;
  return `tp ${tp} · pp ${pp} · dp ${ranks / (tp * pp)}${order}, ZeRO ${zero}, ${batch}`;
}

/** Returns a table: a line for each stage, a column for each kind of memory. */
export function describeMemory(memories: readonly RankMemory[]): string {
  const kinds = KINDS.filter((kind) => memories.some((memory) => memory[kind] > 0));
  const hosts = memories.some(({ host }) => host > 0) ? ["host"] : [];
  const header = ["rank of stage", "weights", ...kinds, "peak", ...hosts, "+ a save"];
  const rows = memories.map((memory) => [
    String(memory.stage),
    describeCount(memory.numParameters),
    ...kinds.map((kind) => formatBytes(memory[kind])),
    formatBytes(memory.peakBytes),
    ...hosts.map(() => formatBytes(memory.host)),
    formatBytes(memory.snapshot),
  ]);
  return planTable([header, ...mergeEqual(rows)]);
}

/** Samples and tokens of one step. */
export interface StepSize {
  readonly samples: number;
  /** Per sample, if the model has tokens. */
  readonly tokens: number | undefined;
}

/** Returns one line with a step's time, its parts, and the throughput. */
export function describeEstimate(estimate: Estimate, size: StepSize): string {
  const { stepS, computeS, exposedS, bubbleS } = estimate;
  const shares = { computing: computeS, exposed: exposedS, bubble: bubbleS };
  return `step ${describeSeconds(stepS)} (estimated): ${describeShares(shares, stepS)}; ${describeRate(stepS, size)}`;
}

/** Returns two lines with a simulated step's time, its parts, and the utilization by `reachedFlopsPerSecond` of products. */
export function describeSimulation(
  simulation: Omit<Simulation, "timeline">,
  reachedFlopsPerSecond: number,
  size: StepSize,
): string {
  const { stepS, computeS, tensorParallelS, exposedS, bubbleS, communicationS, updateS } = simulation;
  const shares = {
    computing: computeS,
    "tensor parallel": tensorParallelS,
    exposed: exposedS,
    bubble: bubbleS,
  };
  const overlap = communicationS + updateS === 0 ? 1 : Math.max(0, 1 - exposedS / (communicationS + updateS));
  const rate = simulation.flopsPerSecond;
  return [
    `step ${describeSeconds(stepS)} (simulated, ${describeCount(simulation.numEvents)} events in order): ${describeShares(shares, stepS)}; ${describeRate(stepS, size)}`,
    `communication ${describeSeconds(communicationS)} and updates ${describeSeconds(updateS)} a rank, ${percent(overlap)} hidden; ${(rate / 1e12).toPrecision(3)} TFLOP/s a rank, ${percent(rate / reachedFlopsPerSecond)} of what its products reach`,
  ].join("\n");
}

/** Returns a table of layouts that fit, in their order. @param tokens - per sample, if the model has tokens */
export function describeSuggestions(suggestions: readonly Suggestion[], tokens: number | undefined): string {
  const header = ["step", tokens === undefined ? "samples/s" : "tokens/s", "peak", "recompute", "layout"];
  const rows = suggestions.map(({ layout, recompute, memory, estimate }) => [
    describeSeconds(estimate.stepS),
    describeCount((layout.batchSize * (tokens ?? 1)) / estimate.stepS),
    formatBytes(memory.peakBytes),
    recompute ? "yes" : "no",
    describeLayout(layout),
  ]);
  return planTable([header, ...rows]);
}

/** Formats a count, such as `12.9B`. */
export function describeCount(count: number): string {
  const units = [
    [1e9, "B"],
    [1e6, "M"],
    [1e3, "k"],
  ] as const;
  for (const [size, unit] of units) if (count >= size) return `${(count / size).toPrecision(3)}${unit}`;
  return String(Number(count.toPrecision(3)));
}

function describeRate(stepS: number, { samples, tokens }: StepSize): string {
  const perSecond = samples / stepS;
  const ofTokens = tokens === undefined ? "" : `, ${describeCount(perSecond * tokens)} tokens/s`;
  return `${describeCount(perSecond)} samples/s${ofTokens}`;
}

function describeSeconds(seconds: number): string {
  return seconds >= 1 ? `${seconds.toPrecision(3)} s` : `${(seconds * 1000).toPrecision(3)} ms`;
}

function describeShares(parts: Readonly<Record<string, number>>, total: number): string {
  return Object.entries(parts)
    .filter(([, seconds]) => seconds > 0.0005 * total)
    .map(([name, seconds]) => `${name} ${percent(seconds / total)}`)
    .join(", ");
}

const percent = (share: number): string => `${(share * 100).toPrecision(share < 0.1 ? 2 : 3)} %`;

/** Merges the lines of stages with equal values. */
function mergeEqual(rows: readonly (readonly string[])[]): string[][] {
  const merged: string[][] = [];
  for (const [stage = "", ...cells] of rows) {
    const last = merged.at(-1);
    if (last !== undefined && last.slice(1).join() === cells.join())
      last[0] = `${last[0]?.split("–")[0]}–${stage}`;
    else merged.push([stage, ...cells]);
  }
  return merged;
}

function planTable(rows: readonly (readonly string[])[]): string {
  return table(rows, (column) => column === 0 || rows[0]?.[column] === "layout");
}
