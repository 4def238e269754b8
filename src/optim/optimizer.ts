import type { AdamWSpec } from "./adamw.ts";
import { adamwRule } from "./adamw-rule.ts";
import { optionError } from "./option-error.ts";
import type { StochasticRounding, UpdateRule } from "./update-rule.ts";

/** An optimizer as plain data: what a job names, what messages carry, what a shard makes an {@link UpdateRule} of. */
export type OptimizerSpec = AdamWSpec & {
  /** How the ranks' narrow parameters are rounded; to nearest where left out. Set by the run, not by the job. */
  readonly rounding?: StochasticRounding | undefined;
};

/**
 * Makes sure that every parameter has one optimizer.
 * @param names - of all parameters of the model
 * @throws {TroupeError} `OPTIMIZER_OPTION` where two optimizers name one parameter, or none names it
 */
export function checkOptimizers(
  specs: readonly OptimizerSpec[],
  names: Iterable<string>,
): readonly OptimizerSpec[] {
  const owners = new Map<string, string>();
  for (const { kind, groups } of specs) {
    for (const name of groups.flatMap((group) => group.names)) {
      const other = owners.get(name);
      if (other !== undefined) throw optionError("optimizer", `one for ${name}`, `${other} and ${kind}`);
      owners.set(name, kind);
    }
  }
  for (const name of names) if (!owners.has(name)) throw optionError("optimizer", `one for ${name}`, "none");
  return specs;
}

/** @returns what a shard does for an optimizer */
export function updateRuleOf(spec: OptimizerSpec): UpdateRule {
  return { ...ruleOf(spec), rounding: spec.rounding };
}

function ruleOf(spec: OptimizerSpec): UpdateRule {
  switch (spec.kind) {
    case "adamw":
      return adamwRule(spec);
    default:
      return spec.kind satisfies never;
  }
}
