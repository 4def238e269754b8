import type { RuntimeSettings } from "../../../job/options/index.ts";
import { newestFirst, openStorage } from "../../../library/checkpoint/index.ts";

/** Value of `resume` with which the same command begins a run and, when started again, resumes it. */
export const RESUME_AUTO = "auto";

/** Resolves `resume: "auto"`: the run's own folder if it has a checkpoint, else no checkpoint. */
export async function settleResume(settings: RuntimeSettings): Promise<RuntimeSettings> {
  const { training, checkpoint } = settings;
  if (training.resume !== RESUME_AUTO) return settings;
  const resume = await startedIn(checkpoint?.dir);
  return { ...settings, training: { ...training, resume } };
}

/** Returns a run's folder if it has a checkpoint. */
export async function startedIn(directory: string | undefined): Promise<string | undefined> {
  if (directory === undefined) return undefined;
  const names = await newestFirst(await openStorage(directory));
  return names.length === 0 ? undefined : directory;
}
