import { expect, it } from "vitest";
import { configure } from "../../src/actors/trainer/index.ts";
import { loadJob } from "../../src/job/index.ts";
import { factsOf, planMemory, plannedJob } from "../../src/tools/planner/index.ts";
import { PLAIN_LAYOUT } from "../fixtures/plain-layout.ts";

const gptJob = new URL("../../bench/gpt/job.ts", import.meta.url);
const bertJob = new URL("../../bench/gpu/bert-job.ts", import.meta.url);
const large = { layers: 24, dim: 2048, heads: 16 };

// Peaks that `npm run bench -- gpu` measured on an H100 (bench/notes/gpu.md): the most bytes of tensors at once.
it.each<[string, URL, Readonly<Record<string, number>>, number, number]>([
  ["GPT-2 124M", gptJob, { seq: 1_024 }, 16, 8_086_033_164],
  ["BERT base", bertJob, {}, 32, 7_362_846_664],
  ["GPT of 1.3 billion", gptJob, { seq: 1_024, ...large }, 8, 32_666_221_100],
])("planMemory of a GPU is within 1 in 100 of what one had: %s", async (_, url, config, batch, measured) => {
  const job = await loadJob(String(url));
  using planned = await plannedJob(job, configure(job, { ...config, batch }), () => [batch]);
  const layout = { ...PLAIN_LAYOUT, batchSize: batch };
  const [rank] = planMemory(factsOf(planned), layout, { precision: "bf16", device: "cuda" });
  const ratio = (rank?.peakBytes ?? 0) / measured;
  expect(Math.abs(ratio - 1)).toBeLessThan(0.01);
});
