import { TroupeError } from "../../../errors/index.ts";
import { stepOf } from "../format/step-folder.ts";
import { weigh } from "../reading/inventory.ts";
import { namedIn } from "../reading/named-states.ts";
import { newestFirst } from "../reading/open-checkpoint.ts";
import { hasManifest, ownerOf, type RunRecord } from "../reading/run-record.ts";
import type { CheckpointStorage } from "../storage/storage.ts";

/** Which checkpoints to keep: those that either rule names. */
export interface KeepRule {
  /** How many of the newest undamaged ones, at least one. */
  readonly last: number;
  /** Those whose step is a multiple of this. */
  readonly every?: number | undefined;
}

/** What pruning did. */
export interface Pruned {
  readonly removed: readonly string[];
  /** What could not be removed, and why; it does no harm to what is kept. */
  readonly failed: readonly { readonly name: string; readonly cause: unknown }[];
}

/**
 * Removes checkpoints that a rule does not keep. It never removes the one that `latest` names, one that has a name, nor any
 * newer than the oldest of the `last` ones. Damaged ones do not count as `last`; another run's neither count nor are removed, nor
 * is a folder without a manifest, which is no checkpoint.
 * @param run - the one whose checkpoints these are; left out: the one that the storage says
 * @throws {TroupeError} `CHECKPOINT_OPTION`; what listing throws
 */
export async function prune(storage: CheckpointStorage, rule: KeepRule, run?: RunRecord): Promise<Pruned> {
  const removed: string[] = [];
  const failed: { name: string; cause: unknown }[] = [];
  for (const name of await plannedPrune(storage, rule, run)) {
    try {
      await storage.remove(name);
      removed.push(name);
    } catch (cause) {
      failed.push({ name, cause });
    }
  }
  return { removed, failed };
}

/** The checkpoints that {@link prune} would remove. @throws {TroupeError} as it does */
export async function plannedPrune(
  storage: CheckpointStorage,
  { last, every }: KeepRule,
  run?: RunRecord,
): Promise<string[]> {
  checkRule({ last, every });
  const latest = await storage.latest();
  const owner = run ?? (await ownerOf(storage));
  const named = new Set(Object.values(await namedIn(storage)).map(({ step }) => step));
  const bySteps = (await newestFirst(storage))
    .map((name) => ({ name, step: stepOf(name) ?? 0 }))
    .sort((a, b) => b.step - a.step);
  const planned: string[] = [];
  let numWhole = 0;
  for (const { name, step } of bySteps) {
    // Only those that may count or go are opened: a run keeps many that a rule by step names.
    if (numWhole >= last && (name === latest || (every !== undefined && step % every === 0))) continue;
    const { damage, foreign } = await weigh(storage, name, owner);
    // What is another run's is not this one's to remove, nor does it stand for what this one keeps.
    if (foreign) continue;
    if (numWhole < last) numWhole += Number(damage === undefined);
    else if (!named.has(step) && (await hasManifest(storage, name))) planned.push(name);
  }
  return planned;
}

/** @throws {TroupeError} `CHECKPOINT_OPTION` for a rule that keeps nothing */
export function checkRule({ last, every }: KeepRule): void {
  requireCount("keep.last", last);
  if (every !== undefined) requireCount("keep.every", every);
}

function requireCount(option: string, got: number): void {
  if (Number.isSafeInteger(got) && got >= 1) return;
  throw new TroupeError(
    "CHECKPOINT_OPTION",
    { where: "checkpoint", expected: `${option} to be a whole number of at least 1`, got: `${got}` },
    { fields: { option, got } },
  );
}
