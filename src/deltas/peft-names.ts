import { Affine, type Module } from "../nn/index.ts";

/** What all of peft's names begin with. */
const PREFIX = "base_model.model.";

/** Names for one module's state that peft has beside the model's own. */
const WRAPPERS = /\.(?:base_layer|modules_to_save|default)(?=\.)/g;

/** @returns what a peft file calls a parameter of a model that a delta was put to */
export function peftName(name: string, model: Module): string {
  const dot = name.lastIndexOf(".");
  const module = model.namedModules().get(name.slice(0, Math.max(0, dot)));
  const isWrapped = module instanceof Affine && module.added !== undefined;
  return PREFIX + (isWrapped ? `${name.slice(0, dot)}.base_layer${name.slice(dot)}` : name);
}

/** @returns the model's own name for what a peft file, or peft itself, calls so */
export function ownName(name: string): string {
  const bare = name.startsWith(PREFIX) ? name.slice(PREFIX.length) : name;
  return bare.replaceAll(WRAPPERS, "");
}
