import { readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { type CheckpointStorage, stepFolder, stepOf } from "../../../library/checkpoint/index.ts";
import { isShareFile, suffixOf } from "./write-share.ts";

/** The text by which writers find out whether they share the run's folder. */
export const writersMark = ".writers";

/**
 * Removes files of shares that no checkpoint needs, and empty folders, from a folder of this host's own, but none of another run.
 * Failed removals are tried again after the next save.
 * @param present - the folders of the present checkpoints @param step - the last saved, by the draft of `ticket`
 */
export async function tidyApart(
  storage: CheckpointStorage,
  {
    present,
    step,
    ticket,
  }: { readonly present: readonly string[]; readonly step: number; readonly ticket: string },
): Promise<void> {
  const directory = storage.location;
  const isHeld = await storage.ask().then(
    () => true,
    () => false,
  );
  if (!isHeld) return;
  const kept = new Set(present);
  for (const folder of await readdir(directory).catch(() => [])) {
    const stepHere = stepOf(folder);
    // Shares of a later step may be those of a save that is under way.
    if (stepHere === undefined || stepHere > step) continue;
    const path = join(directory, folder);
    const files = await readdir(path).catch(() => []);
    const isOver = !kept.has(folder);
    const isStale = (file: string) =>
      isShareFile(file) &&
      (isOver || (folder === stepFolder(step) && !file.includes(`-${suffixOf(ticket)}`)));
    const stale = files.filter(isStale);
    for (const file of stale) await rm(join(path, file), { force: true }).catch(() => {});
    if (isOver && stale.length === files.length && stale.length > 0)
      await rm(path, { recursive: true, force: true }).catch(() => {});
  }
}
