import {
  type LiveModel,
  Runtime,
  type RuntimeOptions,
  type TroupeEvent,
  textDataset,
} from "../../../src/entries/index.ts";
import type calledJob from "../../fixtures/jobs/called.ts";
import type { Workspace } from "../../fixtures/run-tiny.ts";

/** The tiny GPT with programs. */
export const called = new URL("../../fixtures/jobs/called.ts", import.meta.url);

export type Policy = LiveModel<typeof calledJob>;

export const SEED = 7;
export const batchSize = 4;

/** The samples of a step of a run. */
export const rangeAt = (step: number) => ({
  split: "train",
  position: step * batchSize,
  numSamples: batchSize,
});

/** Opens the tiny model, runs `script` on it and closes it. @returns all events */
export async function withModel(
  workspace: Workspace,
  layout: RuntimeOptions,
  config: Readonly<Record<string, unknown>>,
  script: (model: Policy, runtime: Runtime) => Promise<void>,
): Promise<readonly TroupeEvent[]> {
  const events: TroupeEvent[] = [];
  await using runtime = await Runtime.spawn({ threadsPerRank: 1, warmStandby: false, seed: SEED, ...layout });
  runtime.events$.subscribe((event) => events.push(event));
  const given = { data: workspace.text, cache: workspace.path("cache"), ...config };
  await using model = await runtime.open<typeof calledJob>(called, given);
  await script(model, runtime);
  await model.close();
  return events;
}

/** The samples that the tiny model trains on. */
export const dataset = (workspace: Workspace) =>
  textDataset({
    source: workspace.text,
    tokenizer: "byte",
    length: 16,
    seed: SEED,
    cacheDir: workspace.path("cache"),
  });

/** The loss of each step, by step; one that was made twice has its last. */
export function lossesIn(events: readonly TroupeEvent[]): readonly number[] {
  const losses: number[] = [];
  for (const event of events) if (event.kind === "step.finished") losses[event.step - 1] = event.lossNats;
  return losses;
}
