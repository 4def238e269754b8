import { Affine, type Module } from "../../compute/nn/index.ts";
import { moduleName, type StateNaming } from "../models/index.ts";
import { deltaOf } from "./delta.ts";

/** Prefix of all names in peft files; beside a prompt only its first part. */
const PREFIX = "base_model.model.";

/** Parts that peft adds to the names of a module's state. */
const WRAPPERS = /\.(?:base_layer|modules_to_save|default)(?=\.|$)/g;

/** @returns transformers' name, and so peft's, of a module or parameter of a model */
export function foreignNames(
  model: Module & { readonly stateNaming?: StateNaming },
): (name: string) => string {
  return moduleName(model.stateNaming ?? {});
}

/** @returns the name of a model's parameter in a peft file */
export function peftName(name: string, model: Module): string {
  const entry = deltaOf(model)?.entryOf?.(name);
  if (entry !== undefined) return entry;
  const dot = name.lastIndexOf(".");
  const module = model.namedModules().get(name.slice(0, Math.max(0, dot)));
  const isWrapped = module instanceof Affine && module.added !== undefined;
  const foreign = foreignNames(model)(name);
  return PREFIX + (isWrapped ? foreign.replace(/\.(?=[^.]*$)/, ".base_layer.") : foreign);
}

/** peft's name of a parameter in the module `prompt`. */
export function promptEntry(name: string): string {
  const own = name.slice(name.lastIndexOf("prompt.") + "prompt.".length);
  return own === "prompt_embeddings" ? own : `prompt_encoder.${own}`;
}

/** @returns the model's own name for a name in a peft file or of peft's */
export function ownName(name: string): string {
  const prefix = [PREFIX, "base_model."].find((each) => name.startsWith(each)) ?? "";
  return name.slice(prefix.length).replaceAll(WRAPPERS, "");
}
