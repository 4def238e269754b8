import { type Module, materialize } from "../../compute/nn/index.ts";
import {
  copyWeights,
  matchWeights,
  type NamedState,
  pretrained,
  type WeightSource,
} from "../models/index.ts";
import { applyDelta } from "./delta.ts";
import { deltaFrom, loadDelta } from "./peft-folder.ts";

/**
 * Gives a model memory and the weights of its folder, and makes of it what an adapter has tuned. Shapes are compared before memory is
 * allocated, since the sizes come from an untrusted file. The caller dematerializes it, also where this throws.
 * @param adapter - folder of the adapter; undefined: none
 * @throws {TroupeError} errors of weights and deltas
 */
export async function loadTuned(
  model: Module & NamedState,
  source: WeightSource,
  adapter: string | undefined,
): Promise<void> {
  if (adapter !== undefined) applyDelta(model, deltaFrom(adapter));
  const entries = new Map(source.names.map((name) => [name, source.entry(name)]));
  const matched = adapter === undefined ? matchWeights(model, entries) : pretrained(model, entries).matched;
  materialize(model, { seed: 0 });
  await copyWeights(model, matched, source);
  if (adapter !== undefined) await loadDelta(adapter, model);
}
