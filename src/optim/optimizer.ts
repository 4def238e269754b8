import type { AdafactorSpec } from "./adafactor.ts";
import { adafactorRule } from "./adafactor-rule.ts";
import { type AdamSpec, adamRule } from "./adam.ts";
import { type LAMBSpec, lambRule } from "./lamb.ts";
import { type LionSpec, lionRule } from "./lion.ts";
import { optionError } from "./option-error.ts";
import { type SGDSpec, sgdRule } from "./sgd.ts";
import type { StochasticRounding, UpdateRule } from "./update-rule.ts";

/** An optimizer as plain data: what a job names, what messages carry, what a shard makes an {@link UpdateRule} of. */
export type OptimizerSpec = (AdamSpec | SGDSpec | LionSpec | LAMBSpec | AdafactorSpec) & {
  /** How the ranks' narrow parameters are rounded; to nearest where left out. Set by the run, not by the job. */
  readonly rounding?: StochasticRounding | undefined;
};

/**
 * Makes sure that every parameter has one optimizer, and one that can update it.
 * @param parameters - all of the model; `split` where a rank holds a part of one
 * @throws {TroupeError} `OPTIMIZER_OPTION` where two optimizers name one parameter, or none names it, or Adafactor, which looks
 *   at whole rows and columns, one that is split, or LAMB experts that are dealt
 */
export function checkOptimizers(
  specs: readonly OptimizerSpec[],
  parameters: Iterable<
    readonly [name: string, parameter: { readonly split?: unknown; readonly expert?: unknown }]
  >,
): readonly OptimizerSpec[] {
  const owners = new Map<string, OptimizerSpec["kind"]>();
  for (const { kind, groups } of specs) {
    for (const name of groups.flatMap((group) => group.names)) {
      const other = owners.get(name);
      if (other !== undefined) throw optionError("optimizer", `one for ${name}`, `${other} and ${kind}`);
      owners.set(name, kind);
    }
  }
  for (const [name, { split, expert }] of parameters) {
    const kind = owners.get(name);
    if (kind === undefined) throw optionError("optimizer", `one for ${name}`, "none");
    const byParts = kind === "lamb" ? !expert : kind !== "adafactor";
    if (split !== undefined && !byParts)
      throw optionError("optimizer", `one that updates ${name} by parts, which several ranks hold`, kind);
  }
  return specs;
}

/** @returns what a shard does for an optimizer */
export function updateRuleOf(spec: OptimizerSpec): UpdateRule {
  return { ...ruleOf(spec), rounding: spec.rounding };
}

function ruleOf(spec: OptimizerSpec): UpdateRule {
  switch (spec.kind) {
    case "adamw":
    case "adam":
    case "bmtrain-adam":
      return adamRule(spec);
    case "sgd":
      return sgdRule(spec);
    case "lion":
      return lionRule(spec);
    case "lamb":
      return lambRule(spec);
    case "adafactor":
      return adafactorRule(spec);
    default:
      return spec satisfies never;
  }
}
