import { TroupeError } from "../../../errors/index.ts";
import * as nn from "../../nn/index.ts";

/** A module and the rule that splits it, of a kind that the rule can split. */
export type Match = {
  readonly name: string;
  /** The rule's name in the plan. */
  readonly pattern: string;
} & (
  | { readonly kind: "column"; readonly rule: nn.ColumnRule; readonly module: nn.Affine }
  | { readonly kind: "row"; readonly rule: nn.RowRule; readonly module: nn.Affine }
  | {
      readonly kind: "vocabulary";
      readonly rule: nn.VocabularyRule;
      readonly module: nn.Embedding | nn.VocabularyHead;
    }
  | { readonly kind: "features"; readonly rule: nn.FeaturesRule; readonly module: nn.Embedding }
  | { readonly kind: "sequence"; readonly rule: nn.SequenceRule; readonly module: nn.Module }
  | { readonly kind: "replicated"; readonly rule: nn.ReplicatedRule; readonly module: nn.Module }
  | { readonly kind: "mask"; readonly rule: nn.MaskRule; readonly module: nn.Dropout }
);

const splittable = {
  column: [nn.Affine],
  row: [nn.Affine],
  vocabulary: [nn.Embedding, nn.VocabularyHead],
  features: [nn.Embedding],
  sequence: undefined,
  replicated: undefined,
  mask: [nn.Dropout],
} as const;

/**
 * Finds the modules that a plan's rules name.
 * @returns in the order of the model's modules
 * @throws {TroupeError} `TENSOR_PLAN` for a rule that names no module, a module that two rules name, or one that its rule
 * cannot split
 */
export function matchPlan(model: nn.Module, plan: nn.TensorPlan): Match[] {
  const rules = Object.entries(plan).map(([pattern, rule]) => ({
    pattern,
    rule,
    names: nn.planTest(pattern),
  }));
  const used = new Set<string>();
  const matches: Match[] = [];
  for (const [name, module] of model.namedModules()) {
    const found = rules.filter(({ names }) => names(name));
    const [first, second] = found;
    if (first === undefined) continue;
    if (second !== undefined)
      throw planError(`one rule for ${name}`, `"${first.pattern}" and "${second.pattern}"`);
    used.add(first.pattern);
    checkKind(name, module, first.rule);
    checkUneven(name, first.rule);
    checkBehind(name, module, first.rule);
    const { pattern, rule } = first;
    matches.push({ name, pattern, kind: rule.kind, rule, module } as Match);
  }
  for (const { pattern } of rules) {
    if (!used.has(pattern)) throw planError(`a module named "${pattern}"`, "none");
  }
  return matches;
}

function checkKind(name: string, module: nn.Module, rule: nn.SplitRule): void {
  const kinds = splittable[rule.kind];
  if (kinds === undefined || kinds.some((kind) => module instanceof kind)) return;
  const wanted = kinds.map(({ name: kind }) => kind).join(" or ");
  throw planError(`${name} to be ${wanted}, for a "${rule.kind}" rule`, `a ${module.constructor.name}`);
}

/** An uneven split stays split on both sides: joining or dealing features does not cut the padding off. */
function checkUneven(name: string, rule: nn.SplitRule): void {
  const joinsFeatures =
    (rule.kind === "column" && rule.output === "replicated") ||
    (rule.kind === "row" && rule.input !== "split");
  if (!joinsFeatures || !rule.uneven) return;
  throw planError(
    `features of ${name} that stay split, since its ranks may hold them unevenly`,
    "complete ones",
  );
}

/** The module behind a map needs all of its outputs. */
function checkBehind(name: string, module: nn.Module, rule: nn.SplitRule): void {
  if (rule.kind !== "column" || !(module instanceof nn.Affine) || module.behind === undefined) return;
  throw planError(
    `nothing behind ${name}, of whose outputs each rank makes some`,
    `a ${module.behind.constructor.name}`,
  );
}

function planError(expected: string, got: string): TroupeError {
  return new TroupeError("TENSOR_PLAN", { where: "tensorParallel", expected, got, hint: "correct the plan" });
}
