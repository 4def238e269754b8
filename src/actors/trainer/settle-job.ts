import type { Module } from "../../compute/nn/index.ts";
import type { RunChange, TroupeEventBody } from "../../job/events/index.ts";
import { type Job, type JobConfig, loadJob, nameOfJob } from "../../job/index.ts";
import type { RuntimeSettings } from "../../job/options/index.ts";
import type { ActorSystem } from "../../runtime/index.ts";
import { keptModules, type ModuleTexts } from "../../runtime/module-texts.ts";
import type { BegunData, OpenedData } from "../protocols/index.ts";
import { configure } from "./plan/configure.ts";
import { type BatchPlan, dryRun, planBatch } from "./plan/plan-run.ts";
import { trainingOf } from "./plan/training-plan.ts";
import { settingsIn } from "./resume/changes.ts";
import { checkResumed } from "./resume/check-resumed.ts";
import { startOf } from "./resume/delta-base.ts";
import { identityOf } from "./resume/module-identity.ts";
import { KnownRecipe, recipeOf } from "./resume/recipe.ts";
import { type Start, startFromCheckpoint } from "./resume/start.ts";
import { JobLoader } from "./stalls/job-loader.ts";
import { reportingWait } from "./stalls/reported-waits.ts";

/** A job that can be trained, and the state that it starts from. */
export interface SettledJob {
  readonly job: Job;
  readonly config: JobConfig;
  readonly data: OpenedData;
  /** Gives the facts known so far of the data that the run began with. */
  readonly begun: () => BegunData;
  /** The user's modules as the run began with them. */
  readonly modules: ModuleTexts;
  readonly batch: BatchPlan;
  readonly model: Module;
  readonly recipe: KnownRecipe;
  readonly start: Start;
  /** Differences from the run of the checkpoint that it resumes. */
  readonly changes: readonly RunChange[];
}

/**
 * Decides what is trained and from which state, and checks that it can be: everything that may refuse the run before anything
 * is written.
 * @param system - starts the actor that loads the job and its data
 * @param prefix - begins the names of its actors
 * @param overrides - values for the job's settings, instead of its defaults
 * @throws {TroupeError} the first reason why the job cannot be trained with these settings
 */
export async function settleJob(
  system: ActorSystem,
  prefix: string,
  jobUrl: string,
  overrides: Readonly<Record<string, unknown>>,
  settings: RuntimeSettings,
  emit: (event: TroupeEventBody) => void,
): Promise<SettledJob> {
  const { training, execution, precision } = settings;
  const { deadlineMs } = execution;
  const loader = await JobLoader.start({ system, prefix, jobUrl, name: nameOfJob(jobUrl), deadlineMs });
  const job = await loadJob(jobUrl);
  const before =
    training.resume === undefined
      ? undefined
      : await startFromCheckpoint(training.resume, training.isSeedAsked ? training.seed : undefined);
  const resumed = before?.resumed;
  const config = configure(job, overrides, resumed && settingsIn(resumed.state));
  const seed = before?.seed ?? training.seed;
  const { opened: data, fingerprint, begun, modules: loaded } = await loader.open({ config, seed });
  const batch = planBatch(job, await trainingOf(job, config, data.facts), data, settings, resumed);
  const declared = dryRun(job, config, data, settings, batch);
  const { model } = declared;
  const kept = keptModules();
  // If the program has run the job before, it may keep an older text of it.
  const { module, modules } = await identityOf(jobUrl, nameOfJob(jobUrl), {
    sources: { ...kept.sources, ...loaded.sources },
    resolved: { ...kept.resolved, ...loaded.resolved },
  });
  const recipe = new KnownRecipe(
    recipeOf({ ...batch, ...declared, module, precision: precision.name }),
    fingerprint,
  );
  // A new run's first steps do not wait for the data's fingerprint; a resumed run must know it first.
  if (resumed !== undefined)
    await reportingWait(recipe.known, (waitedMs) =>
      emit({ kind: "run.delayed", what: "the fingerprint of its data", waitedMs }),
    );
  const now = { config, recipe: recipe.now, model, steps: batch.steps, facts: data.facts };
  const changes = resumed === undefined ? [] : checkResumed(resumed, { ...now, allowed: training.change });
  const start = await startOf(batch.training, model, seed, before);
  return { job, config, data, begun, modules, batch, model, recipe, start, changes };
}
