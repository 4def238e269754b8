import { type NamesOf, TroupeError, unknownNames } from "../../../errors/index.ts";
import type { Module } from "../../nn/index.ts";
import { parseZeroLevel, type ZeroLevel, type ZeroName } from "./zero.ts";

/** What is computed again in backward: whole blocks, nothing, or parts of blocks by the names of their modules. */
export type Recompute = boolean | readonly string[];

/** What one block may do differently from the rest of the run. */
export interface BlockOptions {
  /** A ZeRO level or its name, as the run's option. */
  readonly zero?: ZeroLevel | ZeroName;
  /** What backward computes again instead of keeping what forward computed inside it. */
  readonly recompute?: Recompute;
}

const NAMES: NamesOf<BlockOptions> = { zero: true, recompute: true };

const OPTIONS = Symbol("troupe.block");

/**
 * Sets options of one block, where the model is built: `block(layer, { zero: 2, recompute: true })`.
 * @param module - an item of one of the model's module lists
 * @returns the same module
 * @throws {TroupeError} `BLOCK_OPTION` for a name that no option has, or a value that it cannot take; `ZERO_LEVEL`
 */
export function block<M extends Module>(module: M, options: BlockOptions): M {
  const unknown = unknownNames(options, NAMES);
  if (unknown !== undefined) {
    throw new TroupeError(
      "BLOCK_OPTION",
      { where: "block", expected: unknown.expected, got: unknown.got, hint: unknown.hint },
      { fields: { option: unknown.got } },
    );
  }
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

/** @returns what {@link block} has set of a module */
export function blockOptionsOf(module: Module): CheckedOptions {
  return (module as { [OPTIONS]?: CheckedOptions })[OPTIONS] ?? {};
}

function checkRecompute(given: Recompute): Recompute {
  const isNames = Array.isArray(given) && given.every((name) => typeof name === "string");
  if (typeof given === "boolean" || isNames) return given;
  throw optionError("recompute", "true, false or names of the block's modules", given);
}

function optionError(option: string, expected: string, got: unknown): TroupeError {
  return new TroupeError(
    "BLOCK_OPTION",
    { where: "block", expected: `${option} to be ${expected}`, got: JSON.stringify(got) ?? String(got) },
    { fields: { option, got } },
  );
}
