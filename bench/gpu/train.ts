/**
 * Trains on one GPU by Runtime and prints one JSON line as peer.py does:
 * `node bench/gpu/train.ts --model gpt2 --batch 16 --sequence 1024 --steps 20`.
 */
import { parseArgs } from "node:util";
import { memory, nativeInfo, Runtime } from "troupe";

const text = { type: "string" } as const;
const { values: flags } = parseArgs({
  options: {
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
    layers: text,
    dim: text,
  },
});

const shapes = {
  gpt2: { layers: 12, dim: 768, heads: 12, vocab: 50257 },
  "gpt-1.3b": { layers: 24, dim: 2048, heads: 16, vocab: 50257 },
  bert: { layers: 12, dim: 768, heads: 12, vocab: 30522 },
} as const;
const shape = shapes[flags.model as keyof typeof shapes];
if (shape === undefined)
  throw new Error(`[bench gpu] expected --model ${Object.keys(shapes).join(", ")}: got ${flags.model}`);
const [batch, sequence, steps, warmup, ranks] = [
  flags.batch,
  flags.sequence,
  flags.steps,
  flags.warmup,
  flags.ranks,
].map(Number) as [number, number, number, number, number];

const losses: number[] = [];
const finishedAt: number[] = [];
let numParameters = 0;
await using runtime = await Runtime.spawn({
  ranks,
  zero: Number(flags.zero),
  device: flags.device,
  ...(flags.carrier === "nccl" && { placement: "process", carrier: flags.carrier }),
  precision: flags.precision === "fp32" ? "fp32" : "bf16",
  seed: 0,
});
runtime.events$.subscribe((event) => {
  if (event.kind === "run.started") numParameters = event.numParameters;
  if (event.kind !== "step.finished") return;
  losses.push(event.lossNats);
  finishedAt.push(performance.now());
});
const job = flags.model === "bert" ? "./bert-job.ts" : "../gpt/job.ts";
await runtime.run(new URL(job, import.meta.url), {
  ...shape,
  ...(flags.layers === undefined ? {} : { layers: Number(flags.layers) }),
  ...(flags.dim === undefined ? {} : { dim: Number(flags.dim) }),
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
    // What tensors of the host ask for, a few batches, is in it.
    peak_bytes: memory().peakBytes,
    losses: [...losses.slice(0, 3), ...losses.slice(-3)].map((loss) => round(loss, 4)),
  }),
);
