import type { AdafactorSpec } from "./adafactor.ts";
import { adafactor } from "./adafactor-rule.ts";
import { type AdamSpec, adam } from "./adam.ts";
import { type LAMBSpec, lamb } from "./lamb.ts";
import { type LionSpec, lion } from "./lion.ts";
import { optionError } from "./option-error.ts";
import { type OwnSpec, own } from "./own-optimizer.ts";
import { type SGDSpec, sgd } from "./sgd.ts";
import type { OptimizerKind, StochasticRounding, UpdateRule } from "./update-rule.ts";

/** An optimizer as plain data: what a job names, what messages carry, what a shard makes an {@link UpdateRule} of. */
export type OptimizerSpec = (AdamSpec | SGDSpec | LionSpec | LAMBSpec | AdafactorSpec | OwnSpec) & {
  /** How the ranks' narrow parameters are rounded; to nearest where left out. Set by the run, not by the job. */
  readonly rounding?: StochasticRounding | undefined;
};

type Kind = OptimizerSpec["kind"];

/** Every kind, by the name that its specs and a checkpoint's recipe have. */
const kinds: { readonly [K in Kind]: OptimizerKind<Extract<OptimizerSpec, { kind: K }>> } = {
  adamw: adam,
  adam,
  "bmtrain-adam": adam,
  sgd,
  lion,
  lamb,
  adafactor,
  own,
};

/** @returns the kind of a spec */
export function kindOf<Spec extends OptimizerSpec>({ kind }: Spec): OptimizerKind<Spec> {
  return kinds[kind] as OptimizerKind<Spec>;
}

/**
 * Makes sure that every parameter has one optimizer, and one that can update it.
 * @param parameters - all of the model; `split` where a rank holds a part of one
 * @throws {TroupeError} `OPTIMIZER_OPTION` where two optimizers name one parameter, or none names it, or one
 *   that cannot update parts names one of which other ranks hold the rest
 */
export function checkOptimizers(
  specs: readonly OptimizerSpec[],
  parameters: Iterable<
    readonly [name: string, parameter: { readonly split?: unknown; readonly expert?: unknown }]
  >,
): readonly OptimizerSpec[] {
  const owners = new Map<string, OptimizerSpec>();
  for (const spec of specs) {
    for (const name of spec.groups.flatMap((group) => group.names)) {
      const other = owners.get(name);
      if (other !== undefined)
        throw optionError("optimizer", `one for ${name}`, `${nameOf(other)} and ${nameOf(spec)}`);
      owners.set(name, spec);
    }
  }
  const parts = new Map(specs.map((spec) => [spec, updateRuleOf(spec).updatesPartOf]));
  for (const [name, { split, expert }] of parameters) {
    const owner = owners.get(name);
    if (owner === undefined) throw optionError("optimizer", `one for ${name}`, "none");
    const byParts = parts.get(owner)?.[expert ? "experts" : "layers"];
    if (split !== undefined && !byParts)
      throw optionError(
        "optimizer",
        `one that updates ${name} by parts, which several ranks hold`,
        nameOf(owner),
      );
  }
  return specs;
}

/** @returns what an error calls an optimizer */
export function nameOf(spec: OptimizerSpec): string {
  return spec.kind === "own" ? spec.name : spec.kind;
}

/** @returns what a shard does for an optimizer; one of a job's own is to be loaded, see `loadOptimizers` */
export function updateRuleOf(spec: OptimizerSpec): UpdateRule {
  return { ...kindOf(spec).rule(spec), groups: spec.groups, rounding: spec.rounding };
}
