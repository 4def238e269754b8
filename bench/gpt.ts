/**
 * Trains the PyTorch peer script's GPT and prints one JSON line of the same shape, with the same flags:
 * `npm run bench -- gpt --ranks 2 --dtype bf16 --strategy fsdp --batch 2`, which is a row of `bench -- peers`. `--batch` is per rank.
 */

import { once } from "node:events";
import { Runtime } from "troupe";
import { nativeInfo } from "troupe/tensor";
import { countOf, numberOf, readArguments, refuse } from "../scripts/arguments.mjs";
import { BETWEEN, type Between } from "./gpt/measured-job.ts";
import { countIn, gptOptions, gptUsage, zeroOf } from "./gpt/options.ts";

const usage = `
usage: npm run bench -- gpt [OPTIONS]
${gptUsage}
  --graph MODE      off, exact or fast (off)`;
const { values: flags } = readArguments(usage, { ...gptOptions, graph: { type: "string", default: "off" } });
const ranks = countIn(usage, flags, "ranks");
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
const { graph } = flags;
if (graph !== "off" && graph !== "exact" && graph !== "fast")
  refuse(usage, "--graph off, exact or fast", graph);
if (!["no", "blocks"].includes(flags.recompute)) refuse(usage, "--recompute no or blocks", flags.recompute);
const recompute = flags.recompute === "blocks";
const steps = countIn(usage, flags, "steps");
// At least one step: the first one's end is where the clock starts.
const warmup = Math.max(1, numberOf(usage, "warmup", flags.warmup));
const batch = countIn(usage, flags, "batch");
const seq = countIn(usage, flags, "seq");
const betweenMs = numberOf(usage, "between", flags.between);
if (betweenMs > 0 && (placement !== "thread" || flags.threads !== "1"))
  refuse(
    usage,
    "--between with --threads 1 and --placement thread",
    `${flags.threads ?? "none"}, ${placement}`,
  );

await using runtime = await Runtime.spawn({
  ranks,
  zero,
  placement,
  graph,
  precision: dtype,
  recompute,
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
/** Products of all ranks before each step, and behind the last one. */
const between: Between[] = [];
const channel = new BroadcastChannel(BETWEEN);
channel.onmessage = ({ data }: { data: unknown }) => void between.push(data as Between);
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
await runtime.run(new URL(betweenMs > 0 ? "./gpt/measured-job.ts" : "./gpt/job.ts", import.meta.url), {
  layers: countIn(usage, flags, "layers"),
  dim: countIn(usage, flags, "dim"),
  heads: countIn(usage, flags, "heads"),
  vocab: countIn(usage, flags, "vocab"),
  batch: batch * ranks,
  seq,
  steps: steps + warmup,
  lr: numberOf(usage, "lr", flags.lr),
  data: flags.data,
  dropout: numberOf(usage, "dropout", flags.dropout),
  betweenMs,
  betweenDtype: dtype === "bf16" ? "bfloat16" : "float32",
});
// The run's end may come before the last of them.
while (betweenMs > 0 && between.length < ranks * (warmup + steps + 1)) await once(channel, "message");
channel.close();

// From one step's end to the next one's: updates that hide under the next forward are paid there, not left out.
const times = finishedAt
  .slice(1)
  .map((at, index) => (at - (finishedAt[index] as number)) / 1000 - wallBetween(index + 1))
  .slice(warmup - 1);
const sorted = times.toSorted((a, b) => a - b);
const middle = sorted.slice(Math.floor((sorted.length - 1) / 2), Math.floor(sorted.length / 2) + 1);
const median = middle.reduce((sum, value) => sum + value, 0) / middle.length;
const { user, system } = process.cpuUsage(cpuBefore);
const cpuBetween = sumOf(
  between.filter(({ step }) => step >= warmup),
  ({ cpuSeconds }) => cpuSeconds,
);
const round = (value: number) => Math.round(value * 1e6) / 1e6;
console.log(
  JSON.stringify({
    peer: "troupe",
    torch: nativeInfo().torch,
    ranks,
    dtype,
    products: dtype === "bf16" ? nativeInfo().bfloat16Products : "libtorch",
    strategy,
    compile: graph !== "off" && graph,
    recompute,
    params: numParameters,
    batch,
    seq,
    step_s: round(median),
    step_min_s: round(sorted[0] ?? Number.NaN),
    ten_min_s: round(fastestOf(times, 10)),
    cpu_s: round(((user + system) / 1e6 - cpuBetween) / steps),
    ...(betweenMs > 0 && { products_per_s: Math.round(steps / secondsOfOne()) }),
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

/** The time that products before a step took from it, in seconds. */
function wallBetween(step: number): number {
  return Math.max(0, ...between.filter((one) => one.step === step).map(({ wallSeconds }) => wallSeconds));
}

/** The processor time of one operation of a product in each timed step, by the products before and behind it; their sum. */
function secondsOfOne(): number {
  return sumOf([...losses.keys()].slice(warmup), (index) => {
    const around = between.filter(({ step }) => step === index || step === index + 1);
    return sumOf(around, ({ seconds }) => seconds) / sumOf(around, ({ operations }) => operations);
  });
}

function sumOf<T>(items: readonly T[], value: (item: T) => number): number {
  return items.reduce((sum, item) => sum + value(item), 0);
}
