import { Affine, joinName, type Module } from "../../compute/nn/index.ts";
import { LinearPattern } from "../../errors/untrusted/index.ts";
import { deltaTarget } from "./delta.ts";
import { foreignNames } from "./peft-names.ts";

/**
 * Modules of a model, by its own names or transformers': complete names or their ends (`query`, `attention.self.query`), a pattern of
 * complete names, or `all-linear`, every affine map except the head's.
 */
export type Target = readonly string[] | RegExp | "all-linear";

/** Other conditions, as in peft. */
export interface TargetOptions {
  readonly target: Target;
  /** Modules to leave out although `target` matches them. */
  readonly exclude?: readonly string[] | RegExp | undefined;
  /** Modules that are trained completely: they and their children are left out. */
  readonly saved?: readonly string[];
  /** Indices of the layers to include. Default: all. */
  readonly layers?: readonly number[] | undefined;
  /** Name in front of a layer's index, such as `layer`, or several, of which the first match counts. Default: any. */
  readonly layersPattern?: string | readonly string[] | undefined;
}

/** Heads that `all-linear` leaves out. */
const HEADS = ["classifier", "score", "qa_outputs", "lm_head"];

/**
 * Finds the target maps, by name.
 * @throws {TroupeError} `DELTA_TARGET` if there are none, or a target is not an affine map
 */
export function affineTargets(model: Module, options: TargetOptions): Map<string, Affine> {
  const found = new Map<string, Affine>();
  const foreign = foreignNames(model);
  for (const [name, module] of model.namedModules()) {
    if (!isMeant(name, module, options) && !isMeant(foreign(name), module, options)) continue;
    if (!(module instanceof Affine))
      throw deltaTarget("target modules that are affine maps", `${name}, a ${module.constructor.name}`);
    found.set(name, module);
  }
  if (found.size > 0) return found;
  const ends = [...model.namedModules()].filter(([, module]) => module instanceof Affine);
  const names = [...new Set(ends.map(([name]) => name.split(".").at(-1)))].join(", ");
  throw deltaTarget(
    `modules named ${describe(options.target)} in ${model.constructor.name}`,
    "none",
    names && `it has ${names}`,
  );
}

/** Whether a name is one of `names`, or ends in one. */
function endsIn(name: string, names: readonly string[]): boolean {
  return names.some((end) => name === end || name.endsWith(`.${end}`));
}

/** Whether a parameter belongs to one of the named modules. */
export function liesIn(parameter: string, modules: readonly string[]): boolean {
  const parts = parameter.split(".");
  let module = "";
  for (const part of parts.slice(0, -1)) {
    module = joinName(module, part);
    if (endsIn(module, modules)) return true;
  }
  return false;
}

/** A pattern of complete names, matched in linear time if possible: always for patterns from untrusted folders. */
export function fullPattern({ source, flags }: RegExp): { test(name: string): boolean } {
  const whole = `^(?:${source})$`;
  try {
    if (flags.replace(/[gu]/g, "") === "") return new LinearPattern(whole);
  } catch {
    // A job's own pattern need not match in linear time.
  }
  return new RegExp(whole, flags.replace("g", ""));
}

/** Whether a module of this name is one of the target's. */
export function isNamed(name: string, target: readonly string[] | RegExp): boolean {
  return target instanceof RegExp ? fullPattern(target).test(name) : endsIn(name, target);
}

function isMeant(name: string, module: Module, options: TargetOptions): boolean {
  const { target, exclude, saved = [] } = options;
  if (exclude !== undefined && isNamed(name, exclude)) return false;
  if (endsIn(name, saved) || liesIn(name, saved)) return false;
  if (target === "all-linear")
    return module instanceof Affine && !endsIn(name, HEADS) && inLayers(name, options);
  return isNamed(name, target) && (target instanceof RegExp || inLayers(name, options));
}

/** Whether the first index in a name, after one of the pattern's words, is among `layers`. */
function inLayers(name: string, { layers, layersPattern = [] }: TargetOptions): boolean {
  if (layers === undefined) return true;
  const parts = name.split(".");
  const words = typeof layersPattern === "string" ? [layersPattern] : layersPattern;
  const places = words.length === 0 ? [placeBehind(parts)] : words.map((word) => placeBehind(parts, word));
  const place = places.find((found) => found >= 0);
  return place !== undefined && layers.includes(Number(parts[place]));
}

/** @returns the position of the first number in a name, after `word` if given; −1 if there is none */
function placeBehind(parts: readonly string[], word?: string): number {
  return parts.findIndex((part, at) => /^\d+$/.test(part) && (word === undefined || parts[at - 1] === word));
}

function describe(target: Target): string {
  return target instanceof RegExp ? `${target}` : typeof target === "string" ? target : target.join(" or ");
}
