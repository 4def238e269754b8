// node bench/learning/ours.ts JSON: trains one case on 2 ranks, ZeRO-3, and prints what it came to as one line of JSON.
import { cpus } from "node:os";
import { Runtime } from "../../src/entries/index.ts";
import { median } from "../measure/median.ts";
import { fastestInARow } from "./page.ts";

interface Asked {
  readonly case: string;
  readonly root: string;
  readonly folder: string;
  readonly seed: number;
  readonly steps: number;
  readonly shuffled: number;
  readonly ranks: number;
  readonly evaluate: number;
}

const { ranks, ...config } = JSON.parse(process.argv[2] ?? "{}") as Asked;
const losses: number[] = [];
const finishedAt: number[] = [];
let scores: Readonly<Record<string, number>> = {};
await using runtime = await Runtime.spawn({
  ranks,
  zero: 3,
  threadsPerRank: Math.max(1, Math.floor(cpus().length / ranks)),
});
runtime.events$.subscribe((event) => {
  if (event.kind === "step.finished") {
    losses.push(event.lossNats);
    finishedAt.push(performance.now());
  } else if (event.kind === "evaluation.finished") {
    scores = event.metrics ?? {};
  } else if (event.kind === "run.failed") console.error(event);
});
await runtime.run(new URL("./job.ts", import.meta.url), config);
const times = finishedAt.slice(1).map((at, index) => (at - (finishedAt[index] as number)) / 1000);
console.log(
  JSON.stringify({
    losses,
    scores,
    step_s: median(times.slice(3)),
    fastest_s: fastestInARow(times.slice(3)),
    peak_bytes: [process.resourceUsage().maxRSS * 1024],
  }),
);
