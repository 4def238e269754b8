/**
 * Trains the PyTorch peer script's GPT and prints one JSON line of the same shape, with the same flags:
 * `npm run bench -- gpt --ranks 2 --dtype bf16 --strategy fsdp --batch 2`. `--batch` is per rank. With `--turns` runs of several graphs
 * follow each other in processes of their own. Their fastest ten steps in a row are compared, their processor time, and what the step's
 * products alone would take at the rate that one core reaches between the runs. `--ranks 2 --batch 2` is the row of `bench -- peers`.
 */

import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { Runtime } from "troupe";
import { nativeInfo, scope, setNumThreads, zeros } from "troupe/tensor";
import { countOf, numberOf, readArguments, refuse } from "../scripts/arguments.mjs";
import { load } from "./machine.ts";

/** The peer's strategies as ZeRO levels. */
const zeroOf: Record<string, number> = { none: 0, ddp: 0, zero1: 1, zero2: 2, fsdp: 3 };

const usage = `
usage: npm run bench -- gpt [OPTIONS]

  --ranks N         (1)
  --threads N       of each rank (its share of the cores)
  --placement NAME  thread or process (thread)
  --strategy NAME   ${Object.keys(zeroOf).join(", ")} (fsdp for several ranks, none for one)
  --dtype NAME      fp32 or bf16 (bf16)
  --layers N        (12)
  --dim N           (768)
  --heads N         (12)
  --vocab N         (50257)
  --batch N         samples of each rank (4)
  --seq N           tokens of a sample (256)
  --steps N         that are timed (5)
  --warmup N        before them (3: the first checks gradients, two record)
  --lr RATE         (3e-4)
  --data FILE       bytes that are learnt (random tokens)
  --seed N          (0)
  --dropout RATE    (0)
  --graph MODE      off, exact or fast (off)
  --turns N         runs of each graph, by turns, instead of one run; --graph then names several (off,exact,fast)`;
const text = { type: "string" } as const;
const { values: flags } = readArguments(usage, {
  ranks: { ...text, default: "1" },
  threads: text,
  dtype: { ...text, default: "bf16" },
  strategy: text,
  placement: { ...text, default: "thread" },
  layers: { ...text, default: "12" },
  dim: { ...text, default: "768" },
  heads: { ...text, default: "12" },
  vocab: { ...text, default: "50257" },
  batch: { ...text, default: "4" },
  seq: { ...text, default: "256" },
  steps: { ...text, default: "5" },
  warmup: { ...text, default: "3" },
  lr: { ...text, default: "3e-4" },
  data: { ...text, default: "" },
  seed: { ...text, default: "0" },
  dropout: { ...text, default: "0" },
  graph: text,
  turns: text,
});
const count = (option: "ranks" | "layers" | "dim" | "heads" | "vocab" | "batch" | "seq" | "steps") =>
  countOf(usage, option, flags[option]);

if (flags.turns !== undefined) {
  compareGraphs(countOf(usage, "turns", flags.turns));
  process.exit();
}
const ranks = count("ranks");
const strategy = flags.strategy ?? (ranks > 1 ? "fsdp" : "none");
const zero = zeroOf[strategy] ?? refuse(usage, `--strategy ${Object.keys(zeroOf).join(", ")}`, strategy);
const dtype =
  flags.dtype === "fp32" || flags.dtype === "bf16"
    ? flags.dtype
    : refuse(usage, "--dtype fp32 or bf16", flags.dtype);
const placement =
  flags.placement === "thread" || flags.placement === "process"
    ? flags.placement
    : refuse(usage, "--placement thread or process", flags.placement);
const steps = count("steps");
// At least one step: the first one's end is where the clock starts.
const warmup = Math.max(1, numberOf(usage, "warmup", flags.warmup));
const batch = count("batch");
const seq = count("seq");

await using runtime = await Runtime.spawn({
  ranks,
  zero,
  placement,
  graph: graphOf(flags.graph ?? "off"),
  precision: dtype,
  seed: numberOf(usage, "seed", flags.seed),
  ...(flags.threads === undefined ? {} : { threadsPerRank: countOf(usage, "threads", flags.threads) }),
});
const losses: number[] = [];
const finishedAt: number[] = [];
const overlaps: number[] = [];
/** Calls of blocks that were recorded, and their time: in all, and behind the warm-up. */
let [numRecorded, numRecordedLate, recordMs] = [0, 0, 0];
/** Durations of the steps with recorded calls. */
const recordingMs: number[] = [];
let numParameters = 0;
let cpuBefore = process.cpuUsage();
runtime.events$.subscribe((event) => {
  if (event.kind === "run.started") numParameters = event.numParameters;
  if (event.kind !== "step.finished") return;
  losses.push(event.lossNats);
  overlaps.push(event.overlap);
  finishedAt.push(performance.now());
  numRecorded += event.blockCalls?.recorded ?? 0;
  if (finishedAt.length > warmup) numRecordedLate += event.blockCalls?.recorded ?? 0;
  recordMs += event.blockCalls?.recordMs ?? 0;
  if ((event.blockCalls?.recorded ?? 0) > 0) recordingMs.push(event.durationMs);
  if (finishedAt.length === warmup) cpuBefore = process.cpuUsage();
});
await runtime.run(new URL("./gpt/job.ts", import.meta.url), {
  layers: count("layers"),
  dim: count("dim"),
  heads: count("heads"),
  vocab: count("vocab"),
  batch: batch * ranks,
  seq,
  steps: steps + warmup,
  lr: numberOf(usage, "lr", flags.lr),
  data: flags.data,
  dropout: numberOf(usage, "dropout", flags.dropout),
});

// From one step's end to the next one's: updates that hide under the next forward are paid there, not left out.
const times = finishedAt
  .slice(1)
  .map((at, index) => (at - (finishedAt[index] as number)) / 1000)
  .slice(warmup - 1);
const sorted = times.toSorted((a, b) => a - b);
const middle = sorted.slice(Math.floor((sorted.length - 1) / 2), Math.floor(sorted.length / 2) + 1);
const median = middle.reduce((sum, value) => sum + value, 0) / middle.length;
const { user, system } = process.cpuUsage(cpuBefore);
const round = (value: number) => Math.round(value * 1e6) / 1e6;
console.log(
  JSON.stringify({
    peer: "troupe",
    torch: nativeInfo().torch,
    ranks,
    dtype,
    products: dtype === "bf16" ? nativeInfo().bfloat16Products : "libtorch",
    strategy,
    compile: (flags.graph ?? "off") !== "off" && flags.graph,
    recompute: false,
    params: numParameters,
    batch,
    seq,
    step_s: round(median),
    step_min_s: round(sorted[0] ?? Number.NaN),
    ten_min_s: round(fastestOf(times, 10)),
    cpu_s: round((user + system) / 1e6 / steps),
    tokens_per_s: Math.round((ranks * batch * seq * 10) / median) / 10,
    peak_bytes: [process.resourceUsage().maxRSS * 1024],
    recorded: numRecorded,
    recorded_late: numRecordedLate,
    record_steps: round(recordMs / 1000 / median),
    record_extra_steps: round(
      recordingMs.reduce((sum, ms) => sum + ms / 1000 / median, 0) - recordingMs.length,
    ),
    overlap: round(overlaps.slice(warmup).reduce((sum, value) => sum + value, 0) / steps),
    losses: losses.map(round),
  }),
);

/** The mean of the fastest `count` neighbours: reports of short steps come together. */
function fastestOf(seconds: readonly number[], count: number): number {
  const window = Math.min(count, seconds.length);
  const sums = seconds
    .slice(window - 1)
    .map((_, index) => seconds.slice(index, index + window).reduce((sum, value) => sum + value, 0));
  return Math.min(...sums) / window;
}

function graphOf(name: string): "off" | "exact" | "fast" {
  if (name === "off" || name === "exact" || name === "fast") return name;
  return refuse(usage, "--graph off, exact or fast", name);
}

/** Runs graphs by turns with the other flags as they are, and prints each run, the load and the fastest steps. */
function compareGraphs(turns: number): void {
  const given = process.argv
    .slice(2)
    .filter((_, index, all) =>
      [all[index], all[index - 1]].every((word) => word !== "--turns" && word !== "--graph"),
    );
  const graphs = (flags.graph ?? "off,exact,fast").split(",").map(graphOf);
  const best = new Map(graphs.map((graph) => [graph, { step: Infinity, cpu: Infinity, losses: "" }]));
  let rate = 0;
  let work = 0;
  for (let turn = 0; turn < turns; turn += 1) {
    for (const graph of graphs) {
      const command = [...process.execArgv, fileURLToPath(import.meta.url), ...given, "--graph", graph];
      const { stdout, stderr } = spawnSync(process.execPath, command, { encoding: "utf8" });
      const run = JSON.parse(stdout || refuse(usage, "a run", stderr));
      const { step, cpu } = best.get(graph) ?? { step: Infinity, cpu: Infinity };
      const losses = JSON.stringify(run.losses);
      best.set(graph, { step: Math.min(step, run.ten_min_s), cpu: Math.min(cpu, run.cpu_s), losses });
      rate = Math.max(rate, productsPerSecond());
      const mebibytes = Math.round(run.peak_bytes[0] / 2 ** 20);
      console.log(
        `${graph.padEnd(5)}  ${milliseconds(run.ten_min_s)} fastest ten, ${milliseconds(run.step_s)} middle, cpu ${milliseconds(run.cpu_s)}, peak ${mebibytes} MiB, last loss ${run.losses.at(-1)}, load ${load()}`,
      );
      work = productsOf(run.ranks * run.batch * run.seq, run.seq);
      if (graph !== "off")
        console.log(
          `       recorded calls took ${run.record_steps.toFixed(2)} steps' time, their computation included, and made steps ${run.record_extra_steps.toFixed(2)} steps' time longer; ${run.recorded_late} of ${run.recorded} behind the warm-up`,
        );
    }
  }
  const [first, ...others] = [...best];
  for (const [graph, { step, cpu, losses }] of others) {
    const [name, one] = first as NonNullable<typeof first>;
    console.log(
      `${graph} ${(one.step / step).toFixed(3)} × as fast as ${name}, by the fastest ten steps in a row; ${(one.cpu / cpu).toFixed(3)} × by the least processor time; ${losses === one.losses ? "the same losses" : "other losses"}`,
    );
  }
  console.log(
    `products reach ${(rate / 1e9).toFixed(0)} GFLOP/s on one core between the runs, by processor time`,
  );
  for (const [graph, { cpu }] of best)
    console.log(
      `  ${graph}: at that rate the products alone are ${((100 * work) / rate / cpu).toFixed(1)} % of a step`,
    );
}

/**
 * The operations of a step's products: with the blocks' matrices and the vocabulary, and attention's with the keys that a token sees.
 * Each is there forward and twice in backward; what attention computes again does not count.
 */
function productsOf(tokens: number, length: number): number {
  const [layers, dim, vocabulary] = [count("layers"), count("dim"), count("vocab")];
  const weights = layers * 12 * dim ** 2 + vocabulary * dim;
  const seen = layers * dim * (length + 1); // a key's and a value's row for each of (length + 1) / 2 keys
  return 6 * (weights + seen) * tokens;
}

/** The best of some products of GPT-2's shapes on one thread, in operations a second of processor time. */
function productsPerSecond(): number {
  setNumThreads(1);
  const dtype = flags.dtype === "fp32" ? "float32" : "bfloat16";
  return scope(() => {
    const [rows, inner, columns] = [1024, 768, 3072];
    const a = zeros([rows, inner], { dtype }).add_(0.5);
    const b = zeros([inner, columns], { dtype }).add_(0.5);
    const seconds = Array.from({ length: 12 }, () => {
      const before = process.cpuUsage();
      scope(() => void a.matmul(b));
      const { user, system } = process.cpuUsage(before);
      return (user + system) / 1e6;
    });
    return (2 * rows * inner * columns) / Math.min(...seconds);
  });
}

function milliseconds(seconds: number): string {
  return `${(seconds * 1000).toFixed(2)} ms`;
}
