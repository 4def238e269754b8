import type { Module } from "../../../compute/nn/index.ts";
import { TroupeError } from "../../../errors/index.ts";
import { hasWeights } from "../../../library/checkpoint/index.ts";
import { hasBase } from "../../../library/deltas/index.ts";
import type { InitialState } from "../../protocols/index.ts";
import { checkModel } from "./check-resumed.ts";
import { checkBase, deltaIn } from "./delta-base.ts";
import { type Resumed, type Start, startFromCheckpoint, startFromWeights } from "./start.ts";

/**
 * Finds the state in a folder for a model that runs already: all of a checkpoint, of any layout, or the weights of a folder in
 * the format of transformers or peft, with moments zero.
 * @param folder - of a checkpoint, of a run's checkpoints (then the newest complete one), or of weights
 * @param start - of the model: gives the base of a delta, and the seed of parameters that the folder lacks
 * @throws {TroupeError} errors of opening it; `RESUME_MISMATCH` or `MODEL_WEIGHTS` for another model's
 */
export async function stateIn(
  folder: string,
  model: Module,
  { base, seed }: Pick<Start, "base" | "seed">,
): Promise<InitialState> {
  const found = await checkpointIn(folder);
  if (found === undefined) {
    const initial = hasBase(model)
      ? await deltaIn(folder, model, seed)
      : (await startFromWeights(folder, model, seed)).initial;
    return { ...initial, base: base?.beginning };
  }
  checkModel(found.resumed as Resumed, model, []);
  if (base !== undefined) checkBase(found, base.identity);
  return { ...found.initial, base: base?.beginning };
}

/** @returns undefined where the folder has weights, and no checkpoint */
function checkpointIn(folder: string): Promise<Start | undefined> {
  return startFromCheckpoint(folder, undefined).catch((error: unknown) => {
    const isMissing = error instanceof TroupeError && error.code === "CHECKPOINT_MISSING";
    if (isMissing && hasWeights(folder)) return undefined;
    throw error;
  });
}
