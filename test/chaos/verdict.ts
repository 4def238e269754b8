import { existsSync, readdirSync } from "node:fs";
import { errorTable } from "../../src/errors/index.ts";
import { openCheckpoint } from "../../src/library/checkpoint/reading/open-checkpoint.ts";
import { LocalFolder } from "../../src/library/checkpoint/storage/local-folder.ts";
import type { Ran } from "./run-program.ts";
import type { Trained } from "./train-and-save.ts";

/** How a run may end that something befell. */
export type Outcome =
  /** No actor was started again; the losses are the undisturbed run's, bit for bit. */
  | "same"
  /** So, but for a save that was given up and reported. */
  | "unsaved"
  /** The rank group was started again, and came to the same losses. */
  | "again"
  /** The run failed with an error that has a code. */
  | "error"
  /** Anything else. */
  | "FAILS";

/** The verdict on a run. */
export interface Verdict {
  readonly outcome: Outcome;
  /** Code of the run's error, or of the abandoned save's. */
  readonly code: string | undefined;
  /** Violations: with any of them the run FAILS. */
  readonly wrong: readonly string[];
}

/** The expectations of a run. */
export interface Expected {
  /** The losses of all steps of the undisturbed run. */
  readonly undisturbed: readonly number[];
  /** The folder of its checkpoints. */
  readonly dir: string;
  /** Whether who saves may end in the middle of it, and so leave what the next to open the folder clears up. */
  readonly mayLeaveDraft: boolean;
}

/** Judges a program by what it reported and what it left. */
export async function judge({ answer, ending, left }: Ran, expected: Expected): Promise<Verdict> {
  const wrong = [...left];
  if (answer === undefined) wrong.push(`the program ended: ${ending}`);
  else wrong.push(...wrongInTelling(answer, expected), ...(await wrongInFolder(answer, expected)));
  return { outcome: outcomeOf(answer, wrong), code: answer?.error?.code ?? answer?.failed[0]?.code, wrong };
}

function wrongInTelling(
  { made, started, saved, failed, error }: Trained,
  { undisturbed }: Expected,
): string[] {
  const wrong: string[] = [];
  const others = made.filter(([step, lossNats]) => !Object.is(lossNats, undisturbed[step - 1]));
  if (others.length > 0) wrong.push(`other losses: ${JSON.stringify(others)}`);
  const numSteps = new Set(made.map(([step]) => step)).size;
  if (error === undefined && numSteps < undisturbed.length) wrong.push(`${numSteps} steps`);
  const ended = [...saved, ...failed.map(({ step }) => step)];
  if (started.toSorted().join() !== ended.toSorted().join())
    wrong.push(`saves that began: ${started}, that ended: ${ended}`);
  if (error !== undefined && !(error.code !== undefined && error.code in errorTable))
    wrong.push(`an error without a code: ${error.message}`);
  return wrong;
}

async function wrongInFolder({ saved }: Trained, { dir, mayLeaveDraft }: Expected): Promise<string[]> {
  const wrong: string[] = [];
  if (mayLeaveDraft) await new LocalFolder(dir).sweep();
  const hidden = existsSync(dir) ? readdirSync(dir).filter((entry) => entry.startsWith(".")) : [];
  if (hidden.length > 0) wrong.push(`left in the run's folder: ${hidden}`);
  const newest = saved.at(-1);
  if (newest === undefined) return wrong;
  await using checkpoint = await openCheckpoint(dir);
  const { step } = checkpoint.state;
  if (step < newest) wrong.push(`step ${newest} was reported saved, ${step} is there`);
  return wrong;
}

function outcomeOf(answer: Trained | undefined, wrong: readonly string[]): Outcome {
  if (answer === undefined || wrong.length > 0) return "FAILS";
  if (answer.error !== undefined) return "error";
  if (answer.numRestarts > 0) return "again";
  return answer.failed.length > 0 ? "unsaved" : "same";
}
