import { passingTogether } from "../../bench/rapidformer/together.ts";
import { configure } from "../../src/actors/trainer/index.ts";
import type { Layout } from "../../src/compute/parallel/index.ts";
import type { RuntimeOptions } from "../../src/entries/index.ts";
import { loadJob } from "../../src/job/index.ts";
import { factsOf, type PlannedPrecision, planMemory, plannedJob } from "../../src/tools/planner/index.ts";
import { peakOfRun } from "../fixtures/peak-of-run.ts";
import { PLAIN_LAYOUT } from "../fixtures/plain-layout.ts";
import type { Workspace } from "../fixtures/run-tiny.ts";

/** A way to run a family whose memory is planned and measured. */
export interface MemoryColumn {
  readonly name: string;
  readonly options: RuntimeOptions;
  readonly layout: Partial<Layout>;
  readonly precision: PlannedPrecision;
}

export const memoryColumns: readonly MemoryColumn[] = [
  { name: "fp32", options: {}, layout: {}, precision: "fp32" },
  { name: "bf16", options: { precision: "bf16" }, layout: {}, precision: "bf16" },
  { name: "amp", options: { precision: "amp-bf16" }, layout: {}, precision: "amp" },
  { name: "graph exact", options: { graph: "exact" }, layout: {}, precision: "fp32" },
  { name: "tp 2", options: { ranks: 2, tp: 2 }, layout: { ranks: 2, tp: 2 }, precision: "fp32" },
  {
    name: "pp 2",
    options: { ranks: 2, pp: 2 },
    layout: { ranks: 2, pp: 2, accumulation: 2 },
    precision: "fp32",
  },
];

const job = new URL("../fixtures/jobs/family.ts", import.meta.url);
const BATCH = 8;

/** @returns the planned peak of all ranks over the ledger's; what a refusal says where the planner cannot know */
export async function plannedOverMeasured(
  workspace: Workspace,
  family: string,
  { options, layout: given, precision }: MemoryColumn,
): Promise<number | string> {
  const layout: Layout = { ...PLAIN_LAYOUT, zero: 0, batchSize: BATCH, ...given };
  const config = {
    data: workspace.text,
    cache: workspace.path("cache"),
    family,
    width: 64,
    layers: 4,
    batch: BATCH,
    accumulation: layout.accumulation,
  };
  try {
    const loaded = await loadJob(String(job));
    using planned = await plannedJob(loaded, configure(loaded, config), () => [BATCH / layout.accumulation]);
    const ranks = planMemory(factsOf(planned), layout, { precision, residence: "process" });
    const perStage = layout.ranks / ranks.length;
    const bytes = ranks.reduce(
      (sum, { parameters, master, optimizer }) => sum + parameters + master + optimizer,
      passingTogether(ranks, layout),
    );
    return (perStage * bytes) / (await peakOfRun(job, options, config)).peakBytes;
  } catch (error) {
    return (error as Error).message;
  }
}
