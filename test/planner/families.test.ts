import { afterAll, describe, expect, it } from "vitest";
import { configure } from "../../src/actors/trainer/index.ts";
import type { Layout } from "../../src/compute/parallel/index.ts";
import { loadJob } from "../../src/job/index.ts";
import { factsOf, planMemory, plannedJob } from "../../src/tools/planner/index.ts";
import { peakOfRun } from "../fixtures/peak-of-run.ts";
import { PLAIN_LAYOUT } from "../fixtures/plain-layout.ts";
import { Workspace } from "../fixtures/run-tiny.ts";

const familyJob = new URL("../fixtures/jobs/family.ts", import.meta.url);
const ownJob = new URL("../fixtures/jobs/gated-tower.ts", import.meta.url);
const BATCH = 8;

describe("planMemory of any model", () => {
  const workspace = new Workspace();
  afterAll(() => workspace[Symbol.dispose]());
  const data = { data: workspace.text, cache: workspace.path("cache") };

  it.each<[string, URL, Readonly<Record<string, string | number>>]>([
    ...[
      "bert",
      "llama",
      "vit",
      "t5",
      "gpt-2",
      "albert",
      "clip",
      "opt",
      "gpt-neox",
      "wav2vec 2 pre-training",
      "gpt-2 with experts",
    ].map((family): [string, URL, { family: string; width: number; layers: number }] => [
      family,
      familyJob,
      { family, width: 64, layers: 4 },
    ]),
    ["a model of one's own", ownJob, {}],
  ])("is within 5 in 100 of the ledger, and knows the state to the byte: %s", async (_, url, config) => {
    const { peakBytes, byTag } = await peakOfRun(url, {}, { ...data, batch: BATCH, ...config });
    const job = await loadJob(String(url));
    using planned = await plannedJob(job, configure(job, { ...data, ...config }), () => [BATCH]);
    const layout: Layout = { ...PLAIN_LAYOUT, batchSize: BATCH };
    const [rank] = planMemory(factsOf(planned), layout, { precision: "fp32", residence: "process" });
    expect({ parameters: rank?.parameters, optimizer: rank?.optimizer }).toEqual({
      parameters: byTag.parameters,
      optimizer: byTag.optimizer,
    });
    expect(Math.abs((rank?.peakBytes ?? 0) / peakBytes - 1)).toBeLessThan(0.05);
  });

  it("holds for blocks that are replayed as programs", async () => {
    const config = { ...data, batch: BATCH, family: "gpt-2", width: 64, layers: 4 };
    const { peakBytes } = await peakOfRun(familyJob, { graph: "exact" }, config);
    const job = await loadJob(String(familyJob));
    using planned = await plannedJob(job, configure(job, config), () => [BATCH]);
    const layout: Layout = { ...PLAIN_LAYOUT, batchSize: BATCH };
    const [rank] = planMemory(factsOf(planned), layout, { precision: "fp32", residence: "process" });
    expect(Math.abs((rank?.peakBytes ?? 0) / peakBytes - 1)).toBeLessThan(0.05);
  });
});
