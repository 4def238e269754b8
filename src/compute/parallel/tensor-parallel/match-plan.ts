import { TroupeError } from "../../../errors/index.ts";
import {
  Affine,
  type ColumnRule,
  Dropout,
  Embedding,
  type FeaturesRule,
  type MaskRule,
  type Module,
  planTest,
  type ReplicatedRule,
  type RowRule,
  type SequenceRule,
  type SplitRule,
  type TensorPlan,
  VocabularyHead,
  type VocabularyRule,
} from "../../nn/index.ts";

/** A module and the rule that splits it, of a kind that the rule can split. */
export type Match = {
  readonly name: string;
  /** The rule's name in the plan. */
  readonly pattern: string;
} & (
  | { readonly kind: "column"; readonly rule: ColumnRule; readonly module: Affine }
  | { readonly kind: "row"; readonly rule: RowRule; readonly module: Affine }
  | {
      readonly kind: "vocabulary";
      readonly rule: VocabularyRule;
      readonly module: Embedding | VocabularyHead;
    }
  | { readonly kind: "features"; readonly rule: FeaturesRule; readonly module: Embedding }
  | { readonly kind: "sequence"; readonly rule: SequenceRule; readonly module: Module }
  | { readonly kind: "replicated"; readonly rule: ReplicatedRule; readonly module: Module }
  | { readonly kind: "mask"; readonly rule: MaskRule; readonly module: Dropout }
);

const splittable = {
  column: [Affine],
  row: [Affine],
  vocabulary: [Embedding, VocabularyHead],
  features: [Embedding],
  sequence: undefined,
  replicated: undefined,
  mask: [Dropout],
} as const;

/**
 * Finds the modules that a plan's rules name.
 * @returns in the order of the model's modules
 * @throws {TroupeError} `TENSOR_PLAN` for a rule that names no module, a module that two rules name, or one that its rule
 * cannot split
 */
export function matchPlan(model: Module, plan: TensorPlan): Match[] {
  const rules = Object.entries(plan).map(([pattern, rule]) => ({ pattern, rule, names: planTest(pattern) }));
  const used = new Set<string>();
  const matches: Match[] = [];
  for (const [name, module] of model.namedModules()) {
    const found = rules.filter(({ names }) => names(name));
    const [first, second] = found;
    if (first === undefined) continue;
    if (second !== undefined) {
      throw planError(`one rule for ${name}`, `"${first.pattern}" and "${second.pattern}"`);
    }
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

function checkKind(name: string, module: Module, rule: SplitRule): void {
  const kinds = splittable[rule.kind];
  if (kinds === undefined || kinds.some((kind) => module instanceof kind)) return;
  const wanted = kinds.map(({ name: kind }) => kind).join(" or ");
  throw planError(`${name} to be ${wanted}, for a "${rule.kind}" rule`, `a ${module.constructor.name}`);
}

/** An uneven split stays split on both sides: joining or dealing features does not cut the padding off. */
function checkUneven(name: string, rule: SplitRule): void {
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
function checkBehind(name: string, module: Module, rule: SplitRule): void {
  if (rule.kind !== "column" || !(module instanceof Affine) || module.behind === undefined) return;
  throw planError(
    `nothing behind ${name}, of whose outputs each rank makes some`,
    `a ${module.behind.constructor.name}`,
  );
}

function planError(expected: string, got: string): TroupeError {
  return new TroupeError("TENSOR_PLAN", { where: "tensorParallel", expected, got, hint: "correct the plan" });
}
