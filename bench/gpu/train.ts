/**
 * Trains on one GPU by Runtime and prints one JSON line as peer.py does:
 * `node bench/gpu/train.ts --model gpt2 --batch 16 --sequence 1024 --steps 20`.
 */

import { Runtime } from "troupe";
import { memory, nativeInfo } from "troupe/tensor";
import { countOf, numberOf, readArguments, refuse } from "../../scripts/arguments.mjs";

const shapes = {
  gpt2: { layers: 12, dim: 768, heads: 12, vocab: 50257 },
  "gpt-1.3b": { layers: 24, dim: 2048, heads: 16, vocab: 50257 },
  bert: { layers: 12, dim: 768, heads: 12, vocab: 30522 },
} as const;

const usage = `
usage: node bench/gpu/train.ts [OPTIONS]

  --model NAME      ${Object.keys(shapes).join(", ")} (gpt2)
  --layers N        in place of the model's
  --dim N           in place of the model's
  --batch N         samples of a step (16)
  --sequence N      tokens of a sample (1024)
  --steps N         that are timed (20)
  --warmup N        before them (5)
  --device NAME     (cuda:0)
  --precision NAME  fp32 or bf16 (bf16)
  --ranks N         (1)
  --zero N          0 to 3 (0)
  --carrier NAME    auto, or nccl between processes (auto)
  --graph MODE      off or exact (off)`;
const text = { type: "string" } as const;
const { values: flags } = readArguments(usage, {
  model: { ...text, default: "gpt2" },
  batch: { ...text, default: "16" },
  sequence: { ...text, default: "1024" },
  steps: { ...text, default: "20" },
  warmup: { ...text, default: "5" },
  device: { ...text, default: "cuda:0" },
  precision: { ...text, default: "bf16" },
  ranks: { ...text, default: "1" },
  zero: { ...text, default: "0" },
  carrier: { ...text, default: "auto" },
  graph: { ...text, default: "off" },
  layers: text,
  dim: text,
});
const shape =
  shapes[flags.model as keyof typeof shapes] ??
  refuse(usage, `--model ${Object.keys(shapes).join(", ")}`, flags.model);
for (const [option, all] of [
  ["precision", ["fp32", "bf16"]],
  ["carrier", ["auto", "nccl"]],
  ["graph", ["off", "exact"]],
] as const)
  if (!(all as readonly string[]).includes(flags[option]))
    refuse(usage, `--${option} ${all.join(" or ")}`, flags[option]);
const count = (option: "batch" | "sequence" | "steps" | "ranks" | "warmup") =>
  countOf(usage, option, flags[option]);
const [batch, sequence, steps, warmup, ranks] = [
  count("batch"),
  count("sequence"),
  count("steps"),
  count("warmup"),
  count("ranks"),
];
const zero = numberOf(usage, "zero", flags.zero);
const sizes = {
  ...(flags.layers !== undefined && { layers: countOf(usage, "layers", flags.layers) }),
  ...(flags.dim !== undefined && { dim: countOf(usage, "dim", flags.dim) }),
};

const losses: number[] = [];
const finishedAt: number[] = [];
let numParameters = 0;
await using runtime = await Runtime.spawn({
  ranks,
  zero,
  device: flags.device,
  ...(flags.carrier === "nccl" && { placement: "process", carrier: flags.carrier }),
  precision: flags.precision === "fp32" ? "fp32" : "bf16",
  graph: flags.graph === "exact" ? "exact" : "off",
  seed: 0,
});
runtime.events$.subscribe((event) => {
  if (event.kind === "run.started") numParameters = event.numParameters;
  if (event.kind === "block.unrecorded") console.error(`${event.block} is issued singly: ${event.reason}`);
  if (event.kind === "block.recorded" && event.uncaptured !== undefined)
    console.error(`${event.block} is no graph: ${event.uncaptured}`);
  if (event.kind !== "step.finished") return;
  losses.push(event.lossNats);
  finishedAt.push(performance.now());
});
const job = flags.model === "bert" ? "./bert-job.ts" : "../gpt/job.ts";
await runtime.run(new URL(job, import.meta.url), {
  ...shape,
  ...sizes,
  batch,
  seq: sequence,
  steps: steps + warmup,
  lr: 1e-4,
});

const seconds = ((finishedAt.at(-1) ?? Number.NaN) - (finishedAt[warmup - 1] ?? Number.NaN)) / 1000 / steps;
const round = (value: number, digits: number) => Number(value.toFixed(digits));
console.log(
  JSON.stringify({
    peer: "troupe",
    torch: nativeInfo().torch,
    device: flags.device,
    model: flags.model,
    params: numParameters,
    batch,
    sequence,
    step_s: round(seconds, 5),
    tokens_per_s: Math.round((batch * sequence) / seconds),
    // This includes tensors of the host, which are a few batches.
    peak_bytes: memory().peakBytes,
    losses: [...losses.slice(0, 3), ...losses.slice(-3)].map((loss) => round(loss, 4)),
  }),
);
