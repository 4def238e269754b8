import { TroupeError } from "../../../errors/index.ts";
import type { Module, Parameter, TensorPlan } from "../../nn/index.ts";
import { matchPlan } from "./match-plan.ts";

/** A position among the tensor-parallel ranks. */
export interface TensorPlace {
  readonly index: number;
  readonly count: number;
}

/** How one parameter is cut, and which neighbours stay together. */
interface Cut {
  /** The plan's name for its module. */
  readonly pattern: string;
  readonly dim: number;
  readonly parts: number;
  readonly unit: number;
  /** Number of units of another map that read each unit. */
  readonly readers: number;
  /** Whether the last ranks may hold less. */
  readonly pad: boolean;
}

/**
 * Cuts a model's parameters to the share of the rank at `place`; a tied one is cut once. Names, initial values and entries of a
 * checkpoint stay those of the complete parameter.
 * @throws {TroupeError} `TENSOR_PLAN`, `PARAMETER_SPLIT`
 */
export function cutParameters(model: Module, plan: TensorPlan, place: TensorPlace): void {
  if (place.count === 1) return;
  for (const [parameter, { pattern, dim, parts, unit, readers, pad }] of cutsOf(model, plan)) {
    const numUnits = (parameter.shape[dim] ?? 0) / parts / unit;
    const divides = (number: number) => number % place.count === 0;
    if (readers > 1 && !divides(numUnits) && (pad || divides(numUnits * readers))) continue; // every rank has all
    if (!pad && !divides(numUnits))
      throw new TroupeError("PARAMETER_SPLIT", {
        where: "tensorParallel",
        expected: `${place.count} tensor-parallel ranks to share ${pattern} evenly`,
        got: `${numUnits} groups of ${unit}`,
        hint: "choose another number of ranks",
        fields: { pattern, shape: parameter.shape, unit, count: place.count },
      });
    parameter.cut({ dim, parts, pad, unit, ...place });
  }
}

/**
 * The sizes that the number of tensor-parallel ranks must divide, with readable names: `{ "groups of 64 in h.*.attn.c_attn": 12
 * }`. The same number under another name is left out.
 * @throws {TroupeError} `TENSOR_PLAN`
 */
export function tensorDivisors(model: Module, plan: TensorPlan): Record<string, number> {
  const divisors = new Map<string, number>();
  const known = new Set<string>();
  for (const [{ shape, split }, { pattern, dim, parts, unit, readers, pad }] of cutsOf(model, plan)) {
    const numUnits = (((split?.logicalShape ?? shape)[dim] ?? 0) / parts / unit) * readers;
    const key = `${numUnits} × ${unit}`;
    if (pad || known.has(key)) continue;
    known.add(key);
    divisors.set(`${unit === 1 ? "features" : `groups of ${unit}`} in ${pattern}`, numUnits);
  }
  return Object.fromEntries(divisors);
}

/** @returns the dim along which tensor-parallel ranks share each parameter that the plan cuts. @throws {TroupeError} `TENSOR_PLAN` */
export function cutDims(model: Module, plan: TensorPlan): Map<Parameter, number> {
  return new Map([...cutsOf(model, plan)].map(([parameter, { dim }]) => [parameter, dim]));
}

function cutsOf(model: Module, plan: TensorPlan): Map<Parameter, Cut> {
  const cuts = new Map<Parameter, Cut>();
  const add = (parameter: Parameter | null, cut: Cut) => {
    if (parameter !== null && !cuts.has(parameter)) cuts.set(parameter, cut);
  };
  for (const match of matchPlan(model, plan)) {
    const { pattern } = match;
    if (match.kind === "column") {
      const { parts, unit, readers, uneven: pad } = match.rule;
      const { weight, bias, outputDim, added, scale } = match.module;
      add(weight, { pattern, dim: outputDim, parts, unit, readers, pad });
      add(bias, { pattern, dim: 0, parts, unit, readers, pad });
      if (scale?.of === "outputs") add(scale.factors, { pattern, dim: 0, parts, unit, readers, pad });
      if (added) add(added.up.weight, { pattern, dim: 0, parts, unit, readers, pad });
    } else if (match.kind === "row") {
      const { weight, outputDim, added, scale } = match.module;
      const inputs = { pattern, parts: 1, unit: match.rule.unit, readers: 1, pad: match.rule.uneven };
      add(weight, { ...inputs, dim: 1 - outputDim });
      if (added) add(added.down.weight, { ...inputs, dim: 1 });
      if (scale?.of === "inputs") add(scale.factors, { ...inputs, dim: 1 });
    } else if (match.kind === "vocabulary") {
      const words = { pattern, dim: 0, parts: 1, unit: 1, readers: 1, pad: true };
      add(match.module.weight, words);
      if ("bias" in match.module) add(match.module.bias, words);
    } else if (match.kind === "features") {
      add(match.module.weight, { pattern, dim: 1, parts: 1, unit: 1, readers: 1, pad: true });
    }
  }
  return cuts;
}
