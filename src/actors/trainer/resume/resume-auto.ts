import type { RuntimeSettings } from "../../../job/options/index.ts";
import { newestFirst, openStorage } from "../../../library/checkpoint/index.ts";

/** What is typed where the same command is to begin a run, and to go on with it each time it is started again. */
export const RESUME_AUTO = "auto";

/** @returns the settings with `resume: "auto"` settled: the run's own folder where that holds a checkpoint, else a run from its first step */
export async function settleResume(settings: RuntimeSettings): Promise<RuntimeSettings> {
  const { training, checkpoint } = settings;
  if (training.resume !== RESUME_AUTO) return settings;
  const resume = await startedIn(checkpoint?.dir);
  return { ...settings, training: { ...training, resume } };
}

/** @returns a run's folder, where it holds a checkpoint */
export async function startedIn(directory: string | undefined): Promise<string | undefined> {
  if (directory === undefined) return undefined;
  const names = await newestFirst(await openStorage(directory));
  return names.length === 0 ? undefined : directory;
}
