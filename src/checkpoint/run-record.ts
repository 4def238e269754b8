import { TroupeError } from "../errors.ts";
import type { TrainerState } from "./manifest.ts";
import { stepOf } from "./step-folder.ts";
import type { CheckpointStorage } from "./storage.ts";
import { type JsonObject, parseJsonObject } from "./strict-json.ts";

/** The text beside the checkpoints that says whose they are. */
const recordName = "run.json";

/** Which run checkpoints are of, and what it was. Plain data: the storage keeps it, and `run` of each manifest. */
export interface RunRecord {
  /** A UUID. A run that goes on in its own folder keeps it. */
  readonly id: string;
  /** The job, as a person would name it. */
  readonly job: string;
  /** When the run began, in ISO 8601. */
  readonly startedAt: string;
  /** The run whose checkpoint this one began with, where that is another. */
  readonly parent?: string;
}

/** @returns the run that a storage belongs to; undefined where nobody has said, as before there were records */
export async function ownerOf(storage: CheckpointStorage): Promise<RunRecord | undefined> {
  const text = await storage.readText(recordName);
  return text === undefined
    ? undefined
    : recordOf(parseJsonObject(text, `${storage.location}/${recordName}`));
}

/** @returns the run that a checkpoint is of; undefined where it does not say */
export function runOf(state: TrainerState): RunRecord | undefined {
  return state.run === undefined ? undefined : recordOf(state.run);
}

/** Whether a checkpoint is of another run than the one that its storage belongs to, as far as both are known. */
export function isForeign(state: TrainerState, owner: RunRecord | undefined): boolean {
  const run = runOf(state);
  return run !== undefined && owner !== undefined && run.id !== owner.id;
}

/** Says whose a storage is. To be called by who has it locked. */
export async function putOwner(storage: CheckpointStorage, run: RunRecord): Promise<void> {
  await storage.writeText(recordName, `${JSON.stringify(run, null, 2)}\n`);
}

/**
 * Makes a storage that holds nothing a run's own. To be called by who has it locked.
 * @throws {TroupeError} `CHECKPOINT_TAKEN` where it holds checkpoints, or another run has begun in it
 */
export async function takeEmpty(storage: CheckpointStorage, run: RunRecord): Promise<void> {
  const owner = await ownerOf(storage);
  const steps = await stepsIn(storage);
  if (steps.length > 0) throw taken(storage, owner, Math.max(...steps));
  await putOwner(storage, run);
}

/** Removes every checkpoint of a storage, and makes it a run's own. To be called by who has it locked. */
export async function takeOver(storage: CheckpointStorage, run: RunRecord): Promise<void> {
  // The name first: from here on no one takes what is left of the other run for this one's.
  await putOwner(storage, run);
  for (const name of await storage.list()) if (stepOf(name) !== undefined) await storage.remove(name);
}

async function stepsIn(storage: CheckpointStorage): Promise<number[]> {
  return (await storage.list()).flatMap((name) => stepOf(name) ?? []);
}

function recordOf(plain: JsonObject | RunRecord): RunRecord | undefined {
  const { id, job, startedAt } = plain;
  const isRecord = [id, job, startedAt].every((value) => typeof value === "string");
  return isRecord ? (plain as unknown as RunRecord) : undefined;
}

function taken(storage: CheckpointStorage, owner: RunRecord | undefined, step: number): TroupeError {
  const whose = owner === undefined ? "a run" : `a run of ${owner.job}, begun ${owner.startedAt},`;
  return new TroupeError(
    "CHECKPOINT_TAKEN",
    {
      where: "checkpoint",
      expected: "a folder without checkpoints for a new run",
      got: `${storage.location} with those of ${whose} up to step ${step}`,
      hint: `go on with it: --resume ${storage.location}; remove it: --overwrite; keep both: give another folder, or --checkpoint auto`,
    },
    { fields: { location: storage.location, step, run: owner?.id } },
  );
}
