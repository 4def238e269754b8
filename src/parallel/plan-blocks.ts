import { cutBlocks, type Module, type Parameter, type ParameterSpec, specOf } from "../nn/index.ts";
import { type FlatBlock, layoutBlock } from "./flat-block.ts";
import type { ZeroLevel } from "./zero.ts";

/** What one block may do differently from the rest of the run. */
export interface BlockOptions {
  readonly zero?: ZeroLevel;
}

const OPTIONS = Symbol("troupe.block");

/**
 * Sets options of one block, where the model is built: `block(layer, { zero: 2 })`.
 * @param module - an item of one of the model's module lists
 * @returns the same module
 */
export function block<M extends Module>(module: M, options: BlockOptions): M {
  Object.defineProperty(module, OPTIONS, { value: options, enumerable: false, configurable: true });
  return module;
}

/** A model cut for the engine: layouts are plain data, the modules and parameters stay in this thread. */
export interface BlockPlan {
  /** Index 0 is the root. */
  readonly layouts: readonly FlatBlock[];
  /** The module of each block; none for the root. */
  readonly modules: readonly (Module | undefined)[];
  /** Each block's parameters, in the order of its layout. */
  readonly parameters: readonly (readonly Parameter[])[];
}

/** The root's place in {@link BlockPlan.layouts}. */
export const ROOT_BLOCK = 0;

/**
 * Cuts a model into flat blocks: the items of its outermost module lists, and the root with everything else.
 * @param zero - level of every block that does not say otherwise
 * @param numRanks - ranks that share each block
 */
export function planBlocks(model: Module, zero: ZeroLevel, numRanks: number): BlockPlan {
  const cut = cutBlocks(model);
  const units = [{ name: "root", module: undefined, parameters: cut.rest }, ...cut.blocks];
  return {
    layouts: units.map((unit, index) => {
      const level = unit.module === undefined ? zero : (optionsOf(unit.module).zero ?? zero);
      return layoutBlock(index, unit.name, level, specsOf(unit.parameters), numRanks);
    }),
    modules: units.map((unit) => unit.module),
    parameters: units.map((unit) => [...unit.parameters.values()]),
  };
}

function optionsOf(module: Module): BlockOptions {
  return (module as { [OPTIONS]?: BlockOptions })[OPTIONS] ?? {};
}

function specsOf(parameters: ReadonlyMap<string, Parameter>): ParameterSpec[] {
  return [...parameters].map(([name, parameter]) => specOf(name, parameter));
}
