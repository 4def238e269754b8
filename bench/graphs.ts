/**
 * Trains a GPT with its blocks as graphs of several kinds, by turns, each run in a process of its own:
 * `npm run bench -- graphs --turns 3 --ranks 2 --batch 2`. The fastest ten steps in a row are compared, the processor time, and what the
 * step's products alone would take at the rate that the run's cores reach between the runs.
 */

import { spawnSync } from "node:child_process";
import { availableParallelism } from "node:os";
import { fileURLToPath } from "node:url";
import { countOf, readArguments, refuse } from "../scripts/arguments.mjs";
import { countIn, gptOptions, gptUsage } from "./gpt/options.ts";
import { load } from "./measure/machine.ts";
import { type ProductRate, productRate } from "./measure/products.ts";

const usage = `
usage: npm run bench -- graphs [OPTIONS]
${gptUsage}
  --graphs MODES    those that are compared (off,exact,fast)
  --turns N         runs of each (3)`;
const { values: flags } = readArguments(usage, {
  ...gptOptions,
  graphs: { type: "string", default: "off,exact,fast" },
  turns: { type: "string", default: "3" },
});
const { graphs: modes, turns, ...given } = flags;
const graphs = modes.split(",");
const numTurns = countOf(usage, "turns", turns);
const gpt = fileURLToPath(new URL("gpt.ts", import.meta.url));
const options = Object.entries(given).map(([name, value]) => `--${name}=${value}`);
const best = new Map(graphs.map((graph) => [graph, { step: Infinity, cpu: Infinity, losses: "" }]));
/** The products' share of a step in each run, by the rate between its steps. */
const shares = new Map(graphs.map((graph) => [graph, [] as number[]]));
const ranks = countIn(usage, flags, "ranks");
const cores =
  flags.threads === undefined ? availableParallelism() : ranks * countOf(usage, "threads", flags.threads);
let rate: ProductRate = { steady: 0, best: 0 };
const work = productsOf();
for (let turn = 0; turn < numTurns; turn += 1) {
  for (const graph of graphs) {
    const command = [...process.execArgv, gpt, ...options, `--graph=${graph}`];
    const { stdout, stderr } = spawnSync(process.execPath, command, { encoding: "utf8" });
    const run = JSON.parse(stdout || refuse(usage, "a run", stderr));
    const { step, cpu } = best.get(graph) ?? { step: Infinity, cpu: Infinity };
    const losses = JSON.stringify(run.losses);
    best.set(graph, { step: Math.min(step, run.ten_min_s), cpu: Math.min(cpu, run.cpu_s), losses });
    const { steady, best: quickest } = await productRate(
      cores,
      flags.dtype === "fp32" ? "float32" : "bfloat16",
    );
    rate = { steady: Math.max(rate.steady, steady), best: Math.max(rate.best, quickest) };
    const mebibytes = Math.round(run.peak_bytes[0] / 2 ** 20);
    console.log(
      `${graph.padEnd(5)}  ${milliseconds(run.ten_min_s)} fastest ten, ${milliseconds(run.step_s)} middle, cpu ${milliseconds(run.cpu_s)}, peak ${mebibytes} MiB, last loss ${run.losses.at(-1)}, load ${load()}`,
    );
    if (run.products_per_s) shares.get(graph)?.push((100 * work) / run.products_per_s / run.cpu_s);
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
  `products reach ${(rate.steady / 1e9).toFixed(0)} GFLOP/s a core between the runs, ${cores} at once for a second, by processor time; the quickest single one ${(rate.best / 1e9).toFixed(0)}`,
);
for (const [graph, { cpu }] of best) {
  const share = (perSecond: number) => ((100 * work) / perSecond / cpu).toFixed(1);
  console.log(
    `  ${graph}: at that rate the products alone are ${share(rate.steady)} % of a step; at the quickest one's ${share(rate.best)} %`,
  );
  const between = shares.get(graph) ?? [];
  if (between.length > 0)
    console.log(
      `  ${graph}: at the rate between its steps ${between.map((one) => one.toFixed(1)).join(", ")} %`,
    );
}

/**
 * The operations of a step's products: with the blocks' matrices and the vocabulary, and attention's with the keys that a token sees.
 * Each is there forward and twice in backward; what attention computes again does not count.
 */
function productsOf(): number {
  const count = (option: Parameters<typeof countIn>[2]) => countIn(usage, flags, option);
  const [layers, dim, vocabulary, length] = [count("layers"), count("dim"), count("vocab"), count("seq")];
  const tokens = ranks * count("batch") * length;
  const weights = layers * 12 * dim ** 2 + vocabulary * dim;
  const seen = layers * dim * (length + 1); // a key's and a value's row for each of (length + 1) / 2 keys
  return 6 * (weights + seen) * tokens;
}

function milliseconds(seconds: number): string {
  return `${(seconds * 1000).toFixed(2)} ms`;
}
