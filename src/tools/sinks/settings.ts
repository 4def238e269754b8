import type { EventOf } from "../../job/events/index.ts";

/** Settings by name. */
export type Settings = Readonly<Record<string, string | number | boolean>>;

/** Settings to compare runs by: the run's options and the job's settings. */
export function settingsOf(run: EventOf<"run.started">): Settings {
  const { job, numRanks, mesh, zero, placement, precision, seed } = run;
  const { numParameters, numTrainable, firstStep, steps } = run;
  const model = { numParameters, numTrainable };
  const own = { job, numRanks, ...mesh, zero, placement, precision, seed, ...model, firstStep, steps };
  const ofJob = Object.entries(run.jobSettings).map(([name, value]) => [
    name in own ? `job.${name}` : name,
    value,
  ]);
  return { ...own, ...Object.fromEntries(ofJob) };
}
