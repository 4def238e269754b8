import { joinName, type Module } from "./module.ts";
import { ModuleList } from "./module-list.ts";
import type { Parameter } from "./parameter.ts";

/** A unit of sharding: a module that is gathered, computed and released at once. */
export interface ModuleBlock {
  /** Full name from the root. */
  readonly name: string;
  readonly module: Module;
  /** The parameters and buffers that only this block uses, by full name. */
  readonly parameters: ReadonlyMap<string, Parameter>;
}

/** A model divided into blocks, and the parameters that belong to none. */
export interface BlockCut {
  readonly blocks: readonly ModuleBlock[];
  /** Embeddings, final norm, heads, and parameters that several blocks use. */
  readonly rest: ReadonlyMap<string, Parameter>;
  /** Number of calls of blocks in one forward, as their lists say. */
  readonly numCalls: number;
}

/**
 * Divides a model into blocks: the items of its outermost module lists, in order of declaration. Every parameter is in
 * exactly one block or in the rest; one that several blocks, or a block and the rest, share is in the rest. A module that is
 * in a list twice is one block.
 */
export function cutBlocks(root: Module): BlockCut {
  const { items: modules, numCalls } = outermostListItems(root);
  const shared = sharedParameters(root, [...modules.values()]);
  const blocks = [...modules].map(([name, module]) => ({
    name,
    module,
    parameters: new Map([...module.namedState(name)].filter(([, parameter]) => !shared.has(parameter))),
  }));
  const taken = new Set(blocks.flatMap((block) => [...block.parameters.values()]));
  const rest = new Map([...root.namedState()].filter(([, parameter]) => !taken.has(parameter)));
  return { blocks, rest, numCalls };
}

function outermostListItems(root: Module): { items: Map<string, Module>; numCalls: number } {
  let numCalls = 0;
  const items = new Map<string, Module>();
  const inside = new Set<Module>();
  for (const [name, list] of root.namedModules()) {
    if (!(list instanceof ModuleList) || inside.has(list)) continue;
    numCalls += list.numCalls;
    for (const [index, item] of list.namedChildren()) {
      if (!inside.has(item)) items.set(joinName(name, index), item);
      for (const module of item.namedModules().values()) inside.add(module);
    }
  }
  return { items, numCalls };
}

/** Returns the parameters that several blocks use, or a block and a module outside all blocks. */
function sharedParameters(root: Module, blocks: readonly Module[]): Set<Parameter> {
  const inside = new Set(blocks.flatMap((block) => [...block.namedModules().values()]));
  const outside = [...root.namedModules().values()].filter((module) => !inside.has(module));
  const shared = new Set<Parameter>();
  const used = new Set(outside.flatMap((module) => [...module.ownState().values()]));
  for (const block of blocks) {
    for (const parameter of block.namedState().values()) (used.has(parameter) ? shared : used).add(parameter);
  }
  return shared;
}
