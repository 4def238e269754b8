/**
 * Trains one small GPT by every strategy on four ranks, each in a process of its own, and prints a row for each: speed as
 * a ratio to plain data parallelism in the same minute, peak memory by kind, and how long the computation stood still for
 * other ranks. `npm run bench -- strategies [NAME …]`; `--json` for lines of JSON.
 */
import { spawnSync } from "node:child_process";
import { tmpdir } from "node:os";
import { fileURLToPath } from "node:url";
import { type EventOf, Runtime, type RuntimeOptions } from "troupe";
import { memory, resetPeakMemory } from "troupe/tensor";
import { readArguments, refuse } from "../scripts/arguments.mjs";

import { median } from "./measure/median.ts";

/** The measurements of one strategy. */
interface Row {
  readonly name: string;
  readonly tokensPerSecond: number;
  /** By kind, the sum of the ranks' peaks, in bytes. */
  readonly peakBytes: Readonly<Record<string, number>>;
  /** Peak of the process; undefined if ranks have processes of their own, whose peaks cannot be read at one moment. */
  readonly totalPeakBytes: number | undefined;
  /** Mean over ranks and steps. */
  readonly exposedMs: number;
  readonly overlap: number;
}

const model = { layers: 4, dim: 256, heads: 8, vocab: 4096, seq: 128, batch: 16, steps: 8 };
const warmup = 3;

interface Strategy {
  readonly options: RuntimeOptions;
  /** Micro-batches of a replica; a pipeline needs some to be full. */
  readonly accumulation?: number;
}

const strategies: Readonly<Record<string, Strategy>> = {
  "dp 4": { options: { zero: 0 } },
  "zero 1": { options: { zero: 1 } },
  "zero 2": { options: { zero: 2 } },
  "zero 3": { options: { zero: 3 } },
  "zero 3, on demand": { options: { zero: 3, prefetchBytes: 0 } },
  "tp 2": { options: { tp: 2 } },
  "tp 2, sequence": { options: { tp: 2, sequenceParallel: true } },
  "tp 2, overlapped": { options: { tp: 2, sequenceParallel: true, overlapChunks: 2 } },
  "tp 4": { options: { tp: 4 } },
  "pp 2, gpipe": { options: { pp: 2, schedule: "gpipe" }, accumulation: 4 },
  "pp 2, 1f1b": { options: { pp: 2 }, accumulation: 4 },
  "pp 2, interleaved": { options: { pp: 2, chunks: 2 }, accumulation: 4 },
  "pp 4, 1f1b": { options: { pp: 4 }, accumulation: 8 },
  "tp 2 × pp 2": { options: { tp: 2, pp: 2 }, accumulation: 4 },
  accumulate: { options: { zero: 1 }, accumulation: 4 },
  recompute: { options: { zero: 3, recompute: true } },
  bf16: { options: { zero: 3, precision: "bf16" } },
  "amp-bf16": { options: { zero: 3, precision: "amp-bf16" } },
  "offload host": { options: { zero: 3, offload: { optimizer: "host" } } },
  "offload nvme": { options: { zero: 3, offload: { optimizer: "nvme", dir: tmpdir() } } },
  "offload parameters": {
    options: { zero: 3, prefetchBytes: 0, offload: { parameters: "nvme", dir: tmpdir() } },
  },
  processes: { options: { zero: 3, placement: "process" } },
};

const usage = `
usage: npm run bench -- strategies [NAME...] [--json]

Trains by all strategies, or by those that are named beside plain data parallelism: ${Object.keys(strategies).join(", ")}
  --json       a line of JSON for each
  --only NAME  that one alone, in this process: what each row starts`;
const options = { json: { type: "boolean", default: false }, only: { type: "string" } } as const;
const { positionals: asked, values: flags } = readArguments(usage, options, Number.POSITIVE_INFINITY);
const unknown = [...asked, flags.only ?? "dp 4"].find((name) => !Object.hasOwn(strategies, name));
if (unknown !== undefined) refuse(usage, "a strategy", unknown);
if (flags.only !== undefined) console.log(JSON.stringify(await measure(flags.only)));
else compare(asked, flags.json);

async function measure(name: string): Promise<Row> {
  const { options, accumulation = 1 } = strategies[name] as Strategy;
  await using runtime = await Runtime.spawn({
    ranks: 4,
    threadsPerRank: 1,
    seed: 0,
    zero: 0,
    accumulation,
    memory: { everySteps: 1 },
    ...options,
  });
  const finishedAtMs: number[] = [];
  const exposedMs: number[] = [];
  const overlaps: number[] = [];
  const heldByRank: EventOf<"memory.measured">["byKind"][] = [];
  runtime.events$.subscribe((event) => {
    if (event.kind === "memory.measured") heldByRank[event.rank] = event.byKind;
    if (event.kind !== "step.finished") return;
    finishedAtMs.push(performance.now());
    exposedMs.push(event.exposedMs);
    overlaps.push(event.overlap);
    if (finishedAtMs.length === warmup) resetPeakMemory();
  });
  await runtime.run(new URL("./gpt/job.ts", import.meta.url), model);
  const times = finishedAtMs
    .slice(warmup)
    .map((at, index) => at - (finishedAtMs[warmup - 1 + index] as number));
  return {
    name,
    tokensPerSecond: (model.batch * model.seq * 1000) / median(times),
    peakBytes: peaksOf(heldByRank),
    totalPeakBytes: options.placement === "process" ? undefined : memory().peakBytes,
    exposedMs: mean(exposedMs.slice(warmup)),
    overlap: mean(overlaps.slice(warmup)),
  };
}

function peaksOf(heldByRank: readonly EventOf<"memory.measured">["byKind"][]): Record<string, number> {
  const sums: Record<string, number> = {};
  for (const held of heldByRank)
    for (const [kind, { peakBytes }] of Object.entries(held)) sums[kind] = (sums[kind] ?? 0) + peakBytes;
  return sums;
}

/** Each strategy in a process of its own, so that none inherits another's memory. */
function compare(names: readonly string[], json: boolean): void {
  const chosen =
    names.length === 0 ? Object.keys(strategies) : ["dp 4", ...names.filter((name) => name !== "dp 4")];
  let plain: Row | undefined;
  for (const name of chosen) {
    const row = measureApart(name);
    plain ??= row;
    console.log(json ? JSON.stringify(row) : describe(row, plain));
  }
}

function measureApart(name: string): Row {
  const child = spawnSync(process.execPath, [fileURLToPath(import.meta.url), "--only", name], {
    encoding: "utf8",
    stdio: ["ignore", "pipe", "inherit"],
  });
  const line = child.stdout.trim().split("\n").at(-1) ?? "";
  if (child.status !== 0 || line === "") throw new Error(`[bench strategies] ${name} failed`);
  return JSON.parse(line) as Row;
}

function describe(row: Row, plain: Row): string {
  const megabytes = (bytes: number | undefined) => (bytes === undefined ? "?" : (bytes / 1e6).toFixed(1));
  const kinds = Object.entries(row.peakBytes)
    .toSorted(([, a], [, b]) => b - a)
    .map(([kind, bytes]) => `${kind} ${megabytes(bytes)}`);
  return [
    row.name.padEnd(18),
    `${Math.round(row.tokensPerSecond).toString().padStart(6)} tokens/s`,
    `${(row.tokensPerSecond / plain.tokensPerSecond).toFixed(2)} ×`,
    `exposed ${row.exposedMs.toFixed(1).padStart(6)} ms`,
    `overlap ${Math.round(row.overlap * 100)
      .toString()
      .padStart(3)} %`,
    `peak ${megabytes(row.totalPeakBytes).padStart(6)} MB (${kinds.join(", ")})`,
  ].join("  ");
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}
