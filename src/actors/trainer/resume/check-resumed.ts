import { type Module, ModuleBuffer } from "../../../compute/nn/index.ts";
import { TroupeError, whatWasMeant } from "../../../errors/index.ts";
import type { RunChange } from "../../../job/events/index.ts";
import type { TrainerState } from "../../../library/checkpoint/index.ts";
import type { DatasetFacts } from "../../../library/data/index.ts";
import { tunedState } from "../../../library/deltas/index.ts";
import { changeableNames, changesSince, type PresentRun } from "./changes.ts";
import type { Resumed } from "./start.ts";

/** A run that is about to be resumed. */
export interface ResumedRun extends PresentRun {
  readonly model: Module;
  readonly steps: number;
  readonly facts: DatasetFacts;
  /** Names that may differ from the checkpoint's: `optimizer` covers all that begins with `optimizer.`; `all` everything. */
  readonly allowed: readonly string[];
}

/**
 * Refuses to resume a checkpoint as a different run, unless the differences are allowed. A checkpoint of the run's last
 * step may be resumed: there is nothing left to do.
 * @returns the differences, for people to read
 * @throws {TroupeError} `RESUME_MISMATCH` with each difference, as it was and as it is; `OPTION` for a name in
 * `allowed` that nothing has
 */
export function checkResumed(resumed: Resumed, now: ResumedRun): RunChange[] {
  const { state } = resumed;
  if (state.step > now.steps) {
    const hint = "nothing is left to train: give more steps, or an earlier checkpoint";
    throw mismatch(
      `a checkpoint of at most step ${now.steps}, the last of the run`,
      `step ${state.step}`,
      hint,
    );
  }
  const changes = changesSince(state, now);
  checkNames(now.allowed, [...changes.map(({ name }) => name), ...changeableNames(now)]);
  checkAllowed(changes, now.allowed);
  checkTokenizer(state, now.facts);
  checkModel(resumed, now.model, changes);
  return changes;
}

/** Refuses a misspelled name, which would silently allow nothing. */
function checkNames(words: readonly string[], names: readonly string[]): void {
  const unknown = words.find((word) => word !== "all" && !names.some((name) => covers(word, name)));
  if (unknown === undefined) return;
  throw new TroupeError("OPTION", {
    where: "options",
    expected: "change to name what this run is made of",
    got: unknown,
    hint: whatWasMeant(unknown, [...new Set([...names, ...names.map((name) => name.replace(/\..*/s, ""))])]),
  });
}

function checkAllowed(changes: readonly RunChange[], allowed: readonly string[]): void {
  const isAllowed = ({ of, name }: RunChange) =>
    // Settings and the run's own options are given by hand: giving another value allows the change.
    of === "settings" || of === "run" || allowed.some((word) => covers(word, name));
  const refused = changes.filter((change) => !isAllowed(change));
  if (refused.length === 0) return;
  const words = refused.map(({ name }) => name).join(",");
  throw mismatch(
    "to train on as the checkpoint's run did",
    `another run: ${sentence(refused)}`,
    `go back to that, or let it change: --change ${words}`,
  );
}

function covers(word: string, name: string): boolean {
  return word === "all" || word === name || name.startsWith(`${word}.`);
}

function checkTokenizer({ tokenizer }: TrainerState, facts: DatasetFacts): void {
  if (JSON.stringify(tokenizer) === JSON.stringify(facts.tokenizer ?? null)) return;
  throw mismatch(
    "the tokenizer of the checkpoint",
    `another one, of ${facts.source}`,
    "resume with the data of the first run",
  );
}

/**
 * Compares tensors by name and shape: a stored one that the model lacks would be lost, a missing one could not be filled.
 * @throws {TroupeError} `RESUME_MISMATCH`
 */
export function checkModel({ path, weights }: Resumed, model: Module, changes: readonly RunChange[]): void {
  const state = tunedState(model);
  const hint = whyAnother(changes);
  for (const [name, { shape }] of state) {
    const stored = weights.get(name);
    // Older versions stored buffers differently; their readers report what is missing.
    if (stored === undefined && state.get(name) instanceof ModuleBuffer) continue;
    if (stored?.join() === shape.join()) continue;
    const is = stored === undefined ? `has no ${name}` : `has ${name} of shape [${stored}]`;
    throw mismatch(`the model of ${path}, which ${is}`, `one with ${name} of shape [${shape}]`, hint);
  }
  const lost = [...weights.keys()].find((name) => !state.has(name));
  if (lost !== undefined) throw mismatch(`the model of ${path}, which has ${lost}`, "one without it", hint);
}

/** The likely cause of a different model: changed settings, or the job's text. */
function whyAnother(changes: readonly RunChange[]): string {
  const settings = changes.filter(({ of }) => of === "settings");
  if (settings.length > 0) return `${sentence(settings)}; leave that setting out to have the checkpoint's`;
  const job = changes.filter(({ of, name }) => of === "run" && covers("job", name));
  return job.length > 0 ? sentence(job) : "is it the same job?";
}

/** "layers was 1, is 2; width was 32, is 64". */
function sentence(changes: readonly RunChange[]): string {
  return changes.map(({ name, was, is }) => `${name} was ${was}, is ${is}`).join("; ");
}

function mismatch(expected: string, got: string, hint: string): TroupeError {
  return new TroupeError("RESUME_MISMATCH", { where: "resume", expected, got, hint });
}
