import type { Module } from "../../compute/nn/index.ts";
import type { RunChange, TroupeEventBody } from "../../job/events/index.ts";
import { type Job, type JobConfig, loadJob, nameOfJob } from "../../job/index.ts";
import type { RuntimeSettings } from "../../job/options/index.ts";
import type { ActorSystem } from "../../runtime/index.ts";
import { keptModules, type ModuleTexts } from "../../runtime/module-texts.ts";
import { configure } from "./plan/configure.ts";
import { type BatchPlan, dryRun, planBatch } from "./plan/plan-run.ts";
import type { RunData } from "./plan/run-data.ts";
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
  readonly data: RunData;
  /** The user's modules as the run began with them. */
  readonly modules: ModuleTexts;
  readonly batch: BatchPlan;
  readonly model: Module;
  readonly recipe: KnownRecipe;
  readonly start: Start;
  /** Differences from the run of the checkpoint that it resumes. */
  readonly changes: readonly RunChange[];
}

/** Where a job is loaded. */
export interface SettlingPlace {
  /** Starts the actor that loads the job and its data. */
  readonly system: ActorSystem;
  /** Begins the names of its actors. */
  readonly prefix: string;
  readonly emit: (event: TroupeEventBody) => void;
  /** The data, if the model that this one is a copy of has loaded the job and opened it. */
  readonly opened: RunData | undefined;
}

/**
 * Decides what is trained and from which state, and checks that it can be: everything that may refuse the run before anything
 * is written.
 * @param overrides - values for the job's settings, instead of its defaults
 * @throws {TroupeError} the first reason why the job cannot be trained with these settings
 */
export async function settleJob(
  { system, prefix, emit, opened }: SettlingPlace,
  jobUrl: string,
  overrides: Readonly<Record<string, unknown>>,
  settings: RuntimeSettings,
): Promise<SettledJob> {
  const { training, execution, precision } = settings;
  const { deadlineMs } = execution;
  const loader =
    opened === undefined
      ? await JobLoader.start({ system, prefix, jobUrl, name: nameOfJob(jobUrl), deadlineMs })
      : { open: async () => opened };
  const job = await loadJob(jobUrl);
  const before =
    training.resume === undefined
      ? undefined
      : await startFromCheckpoint(training.resume, training.isSeedAsked ? training.seed : undefined);
  const resumed = before?.resumed;
  const config = configure(job, overrides, resumed && settingsIn(resumed.state));
  const seed = before?.seed ?? training.seed;
  const data = await loader.open({ config, seed });
  const { facts } = data.opened;
  const batch = planBatch(job, await trainingOf(job, config, facts), data.opened, settings, resumed);
  const declared = dryRun(job, config, data.opened, settings, batch);
  const { model } = declared;
  const kept = keptModules();
  // If the program has run the job before, it may keep an older text of it.
  const { module, modules } = await identityOf(jobUrl, nameOfJob(jobUrl), {
    sources: { ...kept.sources, ...data.modules.sources },
    resolved: { ...kept.resolved, ...data.modules.resolved },
  });
  const recipe = new KnownRecipe(
    recipeOf({ ...batch, ...declared, module, precision: precision.name }),
    data.fingerprint,
  );
  // A new run's first steps do not wait for the data's fingerprint; a resumed run must know it first.
  if (resumed !== undefined)
    await reportingWait(recipe.known, (waitedMs) =>
      emit({ kind: "run.delayed", what: "the fingerprint of its data", waitedMs }),
    );
  const now = { config, recipe: recipe.now, model, steps: batch.steps, facts };
  const changes = resumed === undefined ? [] : checkResumed(resumed, { ...now, allowed: training.change });
  const start = await startOf(batch.training, model, seed, before);
  return { job, config, data, modules, batch, model, recipe, start, changes };
}
