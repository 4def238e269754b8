import { TroupeError } from "../../../errors/index.ts";
import {
  type CheckpointStorage,
  type KeepRule,
  openStorage,
  type Pruned,
  plannedPrune,
  prune,
} from "../../../library/checkpoint/index.ts";
import { print } from "../flags.ts";

interface PruneFlags {
  readonly keepLast: number;
  readonly keepEvery?: number;
  readonly dryRun: boolean;
  readonly json: boolean;
}

/**
 * `troupe checkpoint prune RUN`.
 * @throws {TroupeError} `CHECKPOINT_LOCKED` while a run or a service saves there; `CHECKPOINT_DIRECTORY` where some could not be removed
 */
export async function pruneCheckpoints(location: string, flags: PruneFlags): Promise<void> {
  const storage = await openStorage(location);
  const rule = { last: flags.keepLast, ...(flags.keepEvery === undefined ? {} : { every: flags.keepEvery }) };
  const { removed, failed } = flags.dryRun
    ? { removed: await plannedPrune(storage, rule), failed: [] }
    : await pruneAlone(storage, rule);
  if (flags.json) print(JSON.stringify({ location: storage.location, dryRun: flags.dryRun, removed }));
  else for (const name of removed) print(`${flags.dryRun ? "would remove" : "removed"} ${name}`);
  const [first] = failed;
  if (first === undefined) return;
  throw new TroupeError("CHECKPOINT_DIRECTORY", {
    where: "troupe checkpoint",
    expected: `to remove ${failed.map(({ name }) => name).join(", ")}`,
    got: `"${(first.cause as Error).message}"`,
    hint: "check the folder's permissions",
    cause: first.cause,
  });
}

async function pruneAlone(storage: CheckpointStorage, rule: KeepRule): Promise<Pruned> {
  await using _lock = await storage.lock("troupe checkpoint prune");
  return await prune(storage, rule);
}
