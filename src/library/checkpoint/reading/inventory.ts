import type { TroupeError } from "../../../errors/index.ts";
import { stepFolder, stepOf } from "../format/step-folder.ts";
import type { CheckpointStorage } from "../storage/storage.ts";
import { Checkpoint } from "./checkpoint.ts";
import { isOfCheckpoint } from "./folder-contents.ts";
import { namedIn } from "./named-states.ts";
import { newestFirst, placeOf } from "./open-checkpoint.ts";
import { isForeign, ownerOf, type RunRecord, runOf, savedAt } from "./run-record.ts";

/** A checkpoint of a run, as in a list. */
export interface CheckpointFacts {
  readonly name: string;
  readonly step: number;
  /** Size of all its files, as recorded by the save; 0 if it is damaged. */
  readonly sizeBytes: number;
  /** Whether `latest` names it. */
  readonly latest: boolean;
  /** Names that saves have given it, such as `best`. */
  readonly named: readonly string[];
  /** The run that it belongs to, if recorded. */
  readonly run?: RunRecord;
  /** When it was saved, in ISO 8601, if recorded. */
  readonly savedAt?: string;
  /** Whether it belongs to another run than the storage. */
  readonly foreign: boolean;
  /** Why it cannot be opened, if so. `verifyCheckpoint` also checks the tensors. */
  readonly damage?: TroupeError;
}

/** Lists the checkpoints of a run, the highest step first. @param place - a storage, or the folder of a run */
export async function listCheckpoints(place: CheckpointStorage | string): Promise<CheckpointFacts[]> {
  const { storage, name: only } = await placeOf(place);
  const latest = await storage.latest();
  const owner = await ownerOf(storage);
  const named = Object.entries(await namedIn(storage));
  const names = only === undefined ? await newestFirst(storage) : [only];
  const facts: CheckpointFacts[] = [];
  for (const name of names)
    facts.push({
      name,
      step: stepOf(name) ?? 0,
      latest: name === latest,
      named: named.flatMap(([as, { step }]) => (stepFolder(step) === name ? [as] : [])),
      ...(await weigh(storage, name, owner)),
    });
  return facts.sort((a, b) => b.step - a.step);
}

/** Returns a checkpoint's size and run, or why it cannot be opened. */
export async function weigh(
  storage: CheckpointStorage,
  name: string,
  owner: RunRecord | undefined,
): Promise<Pick<CheckpointFacts, "sizeBytes" | "run" | "savedAt" | "foreign" | "damage">> {
  try {
    await using checkpoint = await Checkpoint.open(await storage.open(name));
    const run = runOf(checkpoint.state);
    const at = savedAt(checkpoint.state);
    const foreign = isForeign(checkpoint.state, owner);
    return { sizeBytes: checkpoint.sizeBytes, ...(run && { run }), ...(at && { savedAt: at }), foreign };
  } catch (error) {
    if (!isOfCheckpoint(error)) throw error;
    return { sizeBytes: 0, foreign: false, damage: error };
  }
}
