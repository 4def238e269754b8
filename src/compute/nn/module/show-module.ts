import { inspect } from "node:util";
import { ModuleBuffer } from "./buffer.ts";
import { Module } from "./module.ts";
import type { Parameter } from "./parameter.ts";
import { Sequential } from "./sequential.ts";

/**
 * Describes a module for `console.log`, like torch: its class, its settings, each parameter and buffer with its shape (and
 * its dtype if that is not float32), and its submodules, with equal neighbours shown once. It never throws.
 */
const showModule = (module: Module): string => show(module, new Set());

function show(module: Module, above: ReadonlySet<Module>): string {
  const { name } = module.constructor;
  if (above.has(module)) return `${name}(…)`;
  try {
    const own = [...settingsOf(module), ...stateOf(module)].join(", ");
    const below = together(childrenOf(module, new Set([...above, module])));
    if (below.length === 0) return `${name}(${own})`;
    const lines = own === "" ? below : [own, ...below];
    return `${name}(\n${lines.map(indented).join("\n")}\n)`;
  } catch (error) {
    return `${name}(${error instanceof Error ? error.message : String(error)})`; // an array hides modules
  }
}

/** Returns its numbers, strings and booleans, without the mode, which belongs to the complete model. */
function settingsOf(module: Module): string[] {
  if (module instanceof Sequential) return [];
  const isShown = ([name, value]: [string, unknown]) =>
    name !== "training" && ["number", "string", "boolean"].includes(typeof value);
  return Object.entries(module)
    .filter(isShown)
    .map(([name, value]) => `${name}=${typeof value === "number" ? short(value) : value}`);
}

function stateOf(module: Module): string[] {
  return [...module.ownState()].map(([name, parameter]) => `${name} ${aboutParameter(parameter)}`);
}

function aboutParameter(parameter: Parameter): string {
  const { dtype, shape, trainable } = parameter;
  const kind = parameter instanceof ModuleBuffer ? " buffer" : trainable ? "" : " frozen";
  return `${dtype === "float32" ? "" : dtype}[${shape.join(",")}]${kind}`;
}

/** Returns its submodules by name with their descriptions; for a Sequential its functions too. */
function childrenOf(module: Module, above: ReadonlySet<Module>): [string, string][] {
  const children: Iterable<[string, unknown]> =
    module instanceof Sequential
      ? [...module].map((item, index) => [String(index), item])
      : module.namedChildren();
  return [...children].map(([name, child]) => [
    name,
    child instanceof Module ? show(child, above) : `${(child as { name?: string }).name || "function"}()`,
  ]);
}

/** Writes one line per submodule, equal neighbours of a list together: "(0-3): 4 x Block(…)". */
function together(children: readonly (readonly [string, string])[]): string[] {
  const rows: { first: string; last: string; count: number; shown: string }[] = [];
  for (const [name, shown] of children) {
    const before = rows.at(-1);
    if (before?.shown === shown && /^\d+$/.test(name))
      Object.assign(before, { last: name, count: before.count + 1 });
    else rows.push({ first: name, last: name, count: 1, shown });
  }
  return rows.map(({ first, last, count, shown }) =>
    count === 1 ? `(${first}): ${shown}` : `(${first}-${last}): ${count} x ${shown}`,
  );
}

const indented = (text: string): string => text.replaceAll(/^/gm, "  ");

const short = (value: number): string => String(Number(value.toPrecision(4)));

Object.defineProperty(Module.prototype, inspect.custom, {
  value: function show(this: Module): string {
    return showModule(this);
  },
  enumerable: false,
});
