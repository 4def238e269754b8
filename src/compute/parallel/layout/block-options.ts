import { type NamesOf, refuseUnknown, TroupeError } from "../../../errors/index.ts";
import type { Module } from "../../nn/index.ts";
import { parseZeroLevel, type ZeroLevel, type ZeroName } from "./zero.ts";

/** The parts that backward computes again: all of a block, nothing, or modules in it by name. */
export type Recompute = boolean | readonly string[];

/** Options of one block that differ from the rest of the run. */
export interface BlockOptions {
  /** A ZeRO level or its name, as the run's option. */
  readonly zero?: ZeroLevel | ZeroName;
  /** The parts that backward computes again instead of keeping their activations. */
  readonly recompute?: Recompute;
}

const NAMES: NamesOf<BlockOptions> = { zero: true, recompute: true };

const OPTIONS = Symbol("troupe.block");

/**
 * Sets options of one block, where the model is built: `block(layer, { zero: 2, recompute: true })`.
 * @param module - an item of one of the model's module lists
 * @returns the same module
 * @throws {TroupeError} `BLOCK_OPTION` for an unknown option, or a value that it cannot take; `ZERO_LEVEL`
 */
export function block<M extends Module>(module: M, options: BlockOptions): M {
  refuseUnknown("BLOCK_OPTION", "block", options, NAMES);
  const { zero, recompute } = options;
  const checked: CheckedOptions = {
    ...(zero !== undefined && { zero: parseZeroLevel(zero) }),
    ...(recompute !== undefined && { recompute: checkRecompute(recompute) }),
  };
  Object.defineProperty(module, OPTIONS, { value: checked, enumerable: false, configurable: true });
  return module;
}

/** {@link BlockOptions} with levels as numbers. */
interface CheckedOptions {
  readonly zero?: ZeroLevel;
  readonly recompute?: Recompute;
}

/** @returns the options that {@link block} has set on a module */
export function blockOptionsOf(module: Module): CheckedOptions {
  return (module as { [OPTIONS]?: CheckedOptions })[OPTIONS] ?? {};
}

function checkRecompute(given: Recompute): Recompute {
  const isNames = Array.isArray(given) && given.every((name) => typeof name === "string");
  if (typeof given === "boolean" || isNames) return given;
  throw new TroupeError("BLOCK_OPTION", {
    where: "block",
    expected: "recompute to be true, false or names of the block's modules",
    got: JSON.stringify(given) ?? String(given),
    fields: { option: "recompute", got: given },
  });
}
