/**
 * Trains the PyTorch peer script's GPT and prints one JSON line of the same shape, with the same flags:
 * `npm run bench -- gpt --ranks 2 --dtype bf16 --strategy fsdp --batch 2`. `--batch` is per rank.
 */
import { parseArgs } from "node:util";
import { nativeInfo, Runtime } from "troupe";

const number = (value: string | undefined, fallback: number) =>
  value === undefined ? fallback : Number(value);

/** The peer's strategies as ZeRO levels. */
const zeroOf: Record<string, number> = { none: 0, ddp: 0, zero1: 1, zero2: 2, fsdp: 3 };

const text = { type: "string" } as const;
const { values: flags } = parseArgs({
  options: {
    ranks: text,
    threads: text,
    dtype: text,
    strategy: text,
    placement: text,
    layers: text,
    dim: text,
    heads: text,
    vocab: text,
    batch: text,
    seq: text,
    steps: text,
    warmup: text,
    lr: text,
    data: text,
    seed: text,
  },
});

const ranks = number(flags.ranks, 1);
const strategy = flags.strategy ?? (ranks > 1 ? "fsdp" : "none");
const zero = zeroOf[strategy];
if (zero === undefined)
  throw new Error(`[bench gpt] expected --strategy ${Object.keys(zeroOf).join(", ")}: got ${strategy}`);
const dtype = flags.dtype ?? "bf16";
if (dtype !== "fp32" && dtype !== "bf16")
  throw new Error(`[bench gpt] expected --dtype fp32 or bf16: got ${dtype}`);
const steps = number(flags.steps, 5);
// At least one step: the first one's end is where the clock starts.
const warmup = Math.max(1, number(flags.warmup, 2));
const batch = number(flags.batch, 4);
const seq = number(flags.seq, 256);

await using runtime = await Runtime.spawn({
  ranks,
  zero,
  placement: flags.placement === "process" ? "process" : "thread",
  precision: dtype,
  seed: number(flags.seed, 0),
  ...(flags.threads === undefined ? {} : { threadsPerRank: Number(flags.threads) }),
});
const losses: number[] = [];
const finishedAt: number[] = [];
const overlaps: number[] = [];
let numParameters = 0;
let cpuBefore = process.cpuUsage();
runtime.events$.subscribe((event) => {
  if (event.kind === "run.started") numParameters = event.numParameters;
  if (event.kind !== "step.finished") return;
  losses.push(event.lossNats);
  overlaps.push(event.overlap);
  finishedAt.push(performance.now());
  if (finishedAt.length === warmup) cpuBefore = process.cpuUsage();
});
await runtime.run(new URL("./gpt/job.ts", import.meta.url), {
  layers: number(flags.layers, 12),
  dim: number(flags.dim, 768),
  heads: number(flags.heads, 12),
  vocab: number(flags.vocab, 50257),
  batch: batch * ranks,
  seq,
  steps: steps + warmup,
  lr: number(flags.lr, 3e-4),
  data: flags.data ?? "",
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
const round = (value: number) => Math.round(value * 1e4) / 1e4;
console.log(
  JSON.stringify({
    peer: "troupe",
    torch: nativeInfo().torch,
    ranks,
    dtype,
    products: dtype === "bf16" ? nativeInfo().bfloat16Products : "libtorch",
    strategy,
    compile: false,
    recompute: false,
    params: numParameters,
    batch,
    seq,
    step_s: round(median),
    step_min_s: round(sorted[0] ?? Number.NaN),
    cpu_s: round((user + system) / 1e6 / steps),
    tokens_per_s: Math.round((ranks * batch * seq * 10) / median) / 10,
    peak_bytes: [process.resourceUsage().maxRSS * 1024],
    overlap: round(overlaps.slice(warmup).reduce((sum, value) => sum + value, 0) / steps),
    losses: losses.map(round),
  }),
);
