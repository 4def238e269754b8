/**
 * Trains small models of this tree and of another one by turns, each run in a process of its own:
 * `npm run bench -- beside ../before --graph exact,fast --turns 3`. Prints every run and the load, then how much faster this tree is
 * by the fastest 50 steps in a row, and by the least processor time of a step. The other tree has its addon built; where its
 * libtorch is not found from here, LD_LIBRARY_PATH names the folder.
 */
import { spawnSync } from "node:child_process";
import { resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { countOf, readArguments, refuse } from "../scripts/arguments.mjs";
import { load } from "./measure/machine.ts";

const usage = `
usage: npm run bench -- beside TREE [OPTIONS]

  --model NAME   hello (examples/hello) or small (bench/gpt/job.ts with 4 layers of 128, float32) (hello)
  --ranks N      (1)
  --graph MODES  of this tree; off, exact, fast (off,exact,fast)
  --turns N      (3)
  --steps N      of each run, more than 250 (1000)
  --semi-space N of each thread at most, in MiB, so that peaks do not depend on when V8 lets it grow (V8's own)`;
const text = { type: "string" } as const;
const { values, positionals } = readArguments(
  usage,
  {
    model: { ...text, default: "hello" },
    ranks: { ...text, default: "1" },
    graph: { ...text, default: "off,exact,fast" },
    turns: { ...text, default: "3" },
    steps: { ...text, default: "1000" },
    "semi-space": text,
  },
  1,
);
const here = fileURLToPath(new URL("..", import.meta.url));
const other = resolve(positionals[0] ?? refuse(usage, "a tree to compare with", "none"));
const { model } = values;
if (model !== "hello" && model !== "small") refuse(usage, "--model hello or small", model);
const [ranks, turns, steps] = [
  countOf(usage, "ranks", values.ranks),
  countOf(usage, "turns", values.turns),
  countOf(usage, "steps", values.steps),
];
const semiSpace = values["semi-space"];
const flags =
  semiSpace === undefined ? [] : [`--max-semi-space-size=${countOf(usage, "semi-space", semiSpace)}`];

/** A line of `beside/run.ts`. */
interface Run {
  readonly stepUs: number;
  readonly processorUs: number;
  readonly peakMiB: number;
  readonly lastLoss: number;
}

const sides = [
  { name: "other", tree: other, graph: "" },
  ...values.graph.split(",").map((graph) => ({ name: graph, tree: here, graph })),
].map((side) => ({ ...side, best: { stepUs: Infinity, processorUs: Infinity, peakMiB: Infinity } }));
for (let turn = 0; turn < turns; turn += 1) {
  for (const { name, tree, graph, best } of sides) {
    const script = fileURLToPath(new URL("./beside/run.ts", import.meta.url));
    const given = JSON.stringify({ tree, graph, model, ranks, steps });
    const { stdout, stderr } = spawnSync(process.execPath, [...flags, script, given], { encoding: "utf8" });
    const run = JSON.parse(stdout || refuse(usage, "a run", stderr)) as Run;
    best.stepUs = Math.min(best.stepUs, run.stepUs);
    best.processorUs = Math.min(best.processorUs, run.processorUs);
    best.peakMiB = Math.min(best.peakMiB, run.peakMiB);
    console.log(
      `${name.padEnd(5)}  ${run.stepUs} us fastest fifty, ${run.processorUs} us of processor time, peak ${run.peakMiB} MiB, last loss ${run.lastLoss}, load ${load()}`,
    );
  }
}
const [before, ...now] = sides;
for (const { name, best } of now) {
  if (before === undefined) break;
  const times = (one: "stepUs" | "processorUs") => (before.best[one] / best[one]).toFixed(2);
  console.log(
    `${name}: ${times("stepUs")} × as fast by the fastest fifty steps, ${times("processorUs")} × by the least processor time, peak ${best.peakMiB} MiB beside ${before.best.peakMiB}`,
  );
}
