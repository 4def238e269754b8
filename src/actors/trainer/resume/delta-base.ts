import { createHash } from "node:crypto";
import type { Module } from "../../../compute/nn/index.ts";
import { TroupeError } from "../../../errors/index.ts";
import type { TrainingPlan } from "../../../job/index.ts";
import { HuggingFaceFolder, type JsonObject } from "../../../library/checkpoint/index.ts";
import {
  adapterConfig,
  deltaOf,
  hasBase,
  matchDelta,
  peftName,
  tunedState,
} from "../../../library/deltas/index.ts";
import type { Beginning, InitialState } from "../../protocols/index.ts";
import { type Start, startFromSeed, startFromWeights, textsBeside } from "./start.ts";

/**
 * Adds the base to the start of a delta's run. The base comes from the folder that the job begins with, or is drawn
 * from the seed; the tuned parameters come from a checkpoint, the delta's own folder or their initializers.
 * @param before - the checkpoint that is resumed, if any
 * @throws {TroupeError} `RESUME_MISMATCH` where that has another base; `MODEL_WEIGHTS` where a folder does not fit
 */
export async function startOf(
  { pretrained, companions }: TrainingPlan,
  model: Module,
  seed: number,
  before: Start | undefined,
): Promise<Start> {
  if (!hasBase(model)) return before ?? (await startAfresh(pretrained, model, seed, companions));
  const recorded = before?.resumed?.state.base;
  const folder = pretrained ?? (typeof recorded?.folder === "string" ? recorded.folder : undefined);
  const begun = await startAfresh(folder, model, seed, companions);
  const beginning = begun.initial;
  const identity = await identityOf(beginning, model);
  if (before !== undefined) checkBase(before, identity);
  const base = { beginning, identity, adapter: adapterTexts(model, folder) };
  const initial =
    before === undefined ? await initialOf(model, beginning) : { ...before.initial, base: beginning };
  return { ...(before ?? begun), texts: begun.texts, initial, base };
}

async function startAfresh(
  folder: string | undefined,
  model: Module,
  seed: number,
  companions: TrainingPlan["companions"],
) {
  const start = folder === undefined ? startFromSeed(seed) : await startFromWeights(folder, model, seed);
  return companions === undefined ? start : { ...start, texts: await textsBeside(start.texts, companions) };
}

/** The delta's initial state, from its own folder if it has one. */
async function initialOf(model: Module, base: Beginning): Promise<InitialState> {
  const folder = deltaOf(model)?.folder;
  return folder === undefined ? base : { ...(await deltaIn(folder, model, base.seed)), base };
}

/** Finds a model's delta in a folder of its own. @throws {TroupeError} `MODEL_WEIGHTS` where it does not fit */
export async function deltaIn(folder: string, model: Module, seed: number): Promise<Beginning> {
  await using opened = await HuggingFaceFolder.open(folder);
  const entries = Object.fromEntries(matchDelta(model, opened).map(({ name, entry }) => [name, entry]));
  return { kind: "weights", step: 0, folder, seed, entries };
}

function adapterTexts(model: Module, folder: string | undefined) {
  const delta = deltaOf(model);
  if (delta === undefined) return undefined;
  const names = Object.fromEntries(
    [...tunedState(model).keys()].map((name) => [name, peftName(name, model)]),
  );
  return { config: adapterConfig(model, delta, folder), names };
}

/** Identifies a base: by the seed that draws it, or by a digest of its tensors in the order of the model. */
async function identityOf(beginning: Beginning, model: Module): Promise<JsonObject> {
  if (beginning.kind === "seed") return { seed: beginning.seed };
  await using opened = await HuggingFaceFolder.open(beginning.folder);
  const digest = createHash("sha256");
  for (const [name, { role }] of model.namedState()) {
    const entry = beginning.entries[name];
    if (role !== "base" || entry === undefined) continue;
    const { dtype, shape } = opened.entry(entry);
    digest.update(`${name} ${dtype} [${shape}]\n`).update(await opened.read(entry));
  }
  return { folder: beginning.folder, sha256: digest.digest("hex") };
}

/** Refuses another base: its folder may have moved, but not changed. @throws {TroupeError} `RESUME_MISMATCH` */
export function checkBase({ resumed }: Start, now: JsonObject): void {
  const was = resumed?.state.base ?? {};
  if (was.sha256 === now.sha256 && was.seed === now.seed) return;
  throw new TroupeError("RESUME_MISMATCH", {
    where: "resume",
    expected: `the base of ${resumed?.path}, ${describe(was)}`,
    got: describe(now),
    hint: "what was tuned on one base means nothing on another",
    fields: { was, now },
  });
}

function describe({ folder, sha256, seed }: JsonObject): string {
  if (sha256 === undefined) return seed === undefined ? "none" : `drawn with seed ${seed}`;
  return `${folder} of digest ${`${sha256}`.slice(0, 12)}`;
}
