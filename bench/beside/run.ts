/** One run of a small model with a tree's own sources; prints a line of JSON. The argument is JSON too. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import type { Runtime as ThisRuntime } from "../../src/entries/index.ts";

const { tree, graph, model, ranks, steps } = JSON.parse(process.argv[2] as string) as {
  readonly tree: string;
  /** Empty in trees that know none. */
  readonly graph: "" | "off" | "exact" | "fast";
  readonly model: "hello" | "small";
  readonly ranks: number;
  readonly steps: number;
};
/** Steps before the measured ones: code is compiled meanwhile. */
const WARM_UP = 200;
/** Reports of short steps come together. */
const WINDOW = 50;
const inTree = (path: string) => pathToFileURL(join(tree, path)).href;
/** Where older trees have their entry. */
const entry = ["src/entries/index.ts", "src/index.ts"].find((path) => existsSync(join(tree, path))) as string;
const { Runtime } = (await import(inTree(entry))) as { Runtime: typeof ThisRuntime };
const config =
  model === "hello"
    ? { steps, data: fileURLToPath(new URL("../../README.md", import.meta.url)) }
    : { layers: 4, dim: 128, heads: 4, vocab: 256, batch: 4 * ranks, seq: 128, steps };
const finishedAtMs: number[] = [];
let cpuBefore = process.cpuUsage();
let lastLoss = Number.NaN;
await using runtime = await Runtime.spawn({
  ranks,
  ...(ranks > 1 ? { zero: 3 } : {}),
  ...(graph === "" ? {} : { graph }),
});
runtime.events$.subscribe((event) => {
  if (event.kind !== "step.finished") return;
  finishedAtMs.push(performance.now());
  lastLoss = event.lossNats;
  if (finishedAtMs.length === WARM_UP) cpuBefore = process.cpuUsage();
});
await runtime.run(new URL(inTree(model === "hello" ? "examples/hello/job.ts" : "bench/gpt/job.ts")), config);
const { user, system } = process.cpuUsage(cpuBefore);
const measured = finishedAtMs.slice(WARM_UP);
const means = measured.slice(WINDOW).map((at, index) => (at - (measured[index] as number)) / WINDOW);
console.log(
  JSON.stringify({
    stepUs: Math.round(1000 * Math.min(...means)),
    processorUs: Math.round((user + system) / (finishedAtMs.length - WARM_UP)),
    peakMiB: Math.round(process.resourceUsage().maxRSS / 1024),
    lastLoss,
  }),
);
