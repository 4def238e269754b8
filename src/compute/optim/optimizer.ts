import type { AdafactorSpec } from "./adafactor.ts";
import { adafactor } from "./adafactor-rule.ts";
import { type AdamSpec, adam } from "./adam.ts";
import { type LAMBSpec, lamb } from "./lamb.ts";
import { type LionSpec, lion } from "./lion.ts";
import { optionError } from "./option-error.ts";
import { type OwnSpec, own } from "./own-optimizer.ts";
import { type SGDSpec, sgd } from "./sgd.ts";
import type { OptimizerKind, StochasticRounding, UpdateRule } from "./update-rule.ts";

/** An optimizer as plain data: a job names it, messages carry it, a shard makes an {@link UpdateRule} of it. */
export type OptimizerSpec = (AdamSpec | SGDSpec | LionSpec | LAMBSpec | AdafactorSpec | OwnSpec) & {
  /** Rounding of the ranks' low-precision parameters. Set by the run, not by the job. Default: to nearest. */
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

/** @returns the kind of a spec @throws {TroupeError} `OPTIMIZER_OPTION` for a kind that is not there */
export function kindOf<Spec extends OptimizerSpec>({ kind }: Spec): OptimizerKind<Spec> {
  if (Object.hasOwn(kinds, kind)) return kinds[kind] as OptimizerKind<Spec>;
  throw optionError("kind", `one of ${Object.keys(kinds).join(", ")}`, kind);
}

/**
 * Checks that every parameter has one optimizer, and one that can update it.
 * @param parameters - all of the model; `split` for those of which a rank holds a part
 * @throws {TroupeError} `OPTIMIZER_OPTION` if two optimizers name one parameter, or none does, or one that cannot update parts
 * names a split one
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

/** @returns an optimizer's name in errors */
export function nameOf(spec: OptimizerSpec): string {
  return spec.kind === "own" ? spec.name : spec.kind;
}

/** @returns the update rule of an optimizer; load a job's own with `loadOptimizers` before */
export function updateRuleOf(spec: OptimizerSpec): UpdateRule {
  return { ...kindOf(spec).rule(spec), groups: spec.groups, rounding: spec.rounding };
}
