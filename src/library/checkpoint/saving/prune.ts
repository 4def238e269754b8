import { optionErrors } from "../../../errors/index.ts";
import { stepOf } from "../format/step-folder.ts";
import { weigh } from "../reading/inventory.ts";
import { namedIn } from "../reading/named-states.ts";
import { newestFirst } from "../reading/open-checkpoint.ts";
import { hasManifest, ownerOf, type RunRecord } from "../reading/run-record.ts";
import type { CheckpointStorage } from "../storage/storage.ts";

/** Selects the checkpoints to keep: those that match either rule. */
export interface KeepRule {
  /** Number of newest undamaged ones to keep, at least one. */
  readonly last: number;
  /** Also keeps checkpoints whose step is a multiple of this. */
  readonly every?: number | undefined;
}

/** Result of pruning. */
export interface Pruned {
  readonly removed: readonly string[];
  /** Checkpoints that could not be removed, or the storage where none could be chosen, and why; those that are kept are not affected. */
  readonly failed: readonly { readonly name: string; readonly cause: unknown }[];
}

/**
 * Removes checkpoints that a rule does not keep. Never removes the one that `latest` names, one with a name, or any
 * newer than the oldest of the `last` ones. Damaged ones do not count as `last`. Ignores those of another run, and
 * folders without a manifest, which are no checkpoints.
 * @param run - the owner of the checkpoints; left out: the storage's
 * @throws {TroupeError} `CHECKPOINT_OPTION`; errors of listing
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

/** Like {@link prune}, after a save that is durable and must not fail any more: `failed` has every error. */
export function pruneAfterSave(storage: CheckpointStorage, rule: KeepRule, run?: RunRecord): Promise<Pruned> {
  return prune(storage, rule, run).catch((cause: unknown) => ({
    removed: [],
    failed: [{ name: storage.location, cause }],
  }));
}

/** Lists the checkpoints that {@link prune} would remove. @throws {TroupeError} as it does */
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
  let numIntact = 0;
  for (const { name, step } of bySteps) {
    // Opens only those that may count or be removed: a run may keep many that match by step.
    if (numIntact >= last && (name === latest || (every !== undefined && step % every === 0))) continue;
    const { damage, foreign } = await weigh(storage, name, owner);
    // Another run's checkpoints are not removed, and do not count towards `last`.
    if (foreign) continue;
    if (numIntact < last) numIntact += Number(damage === undefined);
    else if (!named.has(step) && (await hasManifest(storage, name))) planned.push(name);
  }
  return planned;
}

/** Checks a rule. @throws {TroupeError} `CHECKPOINT_OPTION` for one that keeps nothing */
export function checkRule({ last, every }: KeepRule): void {
  requireCount("keep.last", last);
  if (every !== undefined) requireCount("keep.every", every);
}

function requireCount(option: string, got: number): void {
  if (Number.isSafeInteger(got) && got >= 1) return;
  throw wrongOption(option, "a whole number of at least 1", got);
}

/** The error for an option of saving that is out of range. */
export const wrongOption = optionErrors("CHECKPOINT_OPTION", "checkpoint");
