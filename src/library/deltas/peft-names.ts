import { Affine, type Module } from "../../compute/nn/index.ts";
import { moduleName, type StateNaming } from "../models/index.ts";
import { deltaOf } from "./delta.ts";

/** What all of peft's names begin with; those beside a prompt with the first half. */
const PREFIX = "base_model.model.";

/** Names for one module's state that peft has beside the model's own. */
const WRAPPERS = /\.(?:base_layer|modules_to_save|default)(?=\.|$)/g;

/** @returns what transformers, and so peft, calls a module of a model, or its parameter */
export function foreignNames(
  model: Module & { readonly stateNaming?: StateNaming },
): (name: string) => string {
  return moduleName(model.stateNaming ?? {});
}

/** @returns what a peft file calls a parameter of a model that a delta was put to */
export function peftName(name: string, model: Module): string {
  const entry = deltaOf(model)?.entryOf?.(name);
  if (entry !== undefined) return entry;
  const dot = name.lastIndexOf(".");
  const module = model.namedModules().get(name.slice(0, Math.max(0, dot)));
  const isWrapped = module instanceof Affine && module.added !== undefined;
  const foreign = foreignNames(model)(name);
  return PREFIX + (isWrapped ? foreign.replace(/\.(?=[^.]*$)/, ".base_layer.") : foreign);
}

/** What a file calls a parameter of a prompt or a prefix, whose module is called `prompt`: its vectors as peft does. */
export function promptEntry(name: string): string {
  const own = name.slice(name.lastIndexOf("prompt.") + "prompt.".length);
  return own === "prompt_embeddings" ? own : `prompt_encoder.${own}`;
}

/** @returns the model's own name for what a peft file, or peft itself, calls so */
export function ownName(name: string): string {
  const prefix = [PREFIX, "base_model."].find((each) => name.startsWith(each)) ?? "";
  return name.slice(prefix.length).replaceAll(WRAPPERS, "");
}
