/**
 * The part of an activation that a tensor-parallel rank has: all of it, its share of the positions, or its share of the features.
 */
export type Held = "replicated" | "sequence" | "split";

/** Splits an affine map by outputs: every rank computes some of the features. */
export interface ColumnRule {
  readonly kind: "column";
  /** Number of equal blocks in the outputs, each split separately: 3 for a fused query-key-value map. */
  readonly parts: number;
  /** Number of outputs that stay together, such as the width of a head. */
  readonly unit: number;
  /**
   * Number of units of another column map that read each unit of this one, such as query heads that share a key/value head.
   * If the ranks divide the readers but not the units, every rank has the complete map and computes the units that its
   * readers read: one for all of them, or one each.
   */
  readonly readers: number;
  /**
   * Whether the last ranks may hold less if the number of ranks does not divide the units. The missing outputs are zero, are
   * never stored and stay zero: the row map after this one reads zeros there, whatever is between.
   */
  readonly uneven: boolean;
  /** Undefined: "sequence" if the sequence is split between the layers, else "replicated". */
  readonly input: "replicated" | "sequence" | undefined;
  readonly output: "split" | "replicated";
}

/** Splits an affine map by inputs: every rank sums over some of the features, then the sums are added over the ranks. */
export interface RowRule {
  readonly kind: "row";
  /** Number of inputs that stay together. */
  readonly unit: number;
  /** Whether the last ranks may hold less, like the column map before it. Its input must be split. */
  readonly uneven: boolean;
  readonly input: Held;
  /** Undefined: "sequence" if the sequence is split between the layers, else "replicated". */
  readonly output: "replicated" | "sequence" | undefined;
}

/** Splits a token embedding or a vocabulary head by words. The last ranks may hold padding, which is never stored. */
export interface VocabularyRule {
  readonly kind: "vocabulary";
  /** For a head. Undefined: "sequence" if the sequence is split between the layers, else "replicated". */
  readonly input: "replicated" | "sequence" | undefined;
}

/**
 * Splits a table by the features of its rows, such as a bias with a number for each head: every rank looks up its own. The
 * last ranks may hold less.
 */
export interface FeaturesRule {
  readonly kind: "features";
}

/**
 * Marks a module between the split layers. If the sequence is split there, it computes on the rank's share of the positions,
 * so that the gradients of its parameters are summed over the ranks and its dropouts mask that share; otherwise the rule does
 * nothing.
 */
export interface SequenceRule {
  readonly kind: "sequence";
  /** "replicated" for the first such module, which takes its share of an activation that every rank has. */
  readonly input: "replicated" | "sequence";
  /** "replicated" for the last such module, whose output is gathered on every rank. */
  readonly output: "replicated" | "sequence";
}

/**
 * Marks a module between the split layers that needs all positions, such as a mixture of experts. If the sequence is split
 * there, the positions are gathered, every rank computes the same, and keeps its share of results that have positions;
 * otherwise the rule does nothing.
 */
export interface ReplicatedRule {
  readonly kind: "replicated";
}

/** Marks a dropout whose input is split over the ranks along `dim`, such as attention weights by heads. */
export interface MaskRule {
  readonly kind: "mask";
  readonly dim: number;
  /** Size of the complete input along `dim`, if the ranks may not divide it; undefined if they do. */
  readonly size: number | undefined;
}

/** The rule by which one module is split. Plain data. */
export type SplitRule =
  | ColumnRule
  | RowRule
  | VocabularyRule
  | FeaturesRule
  | SequenceRule
  | ReplicatedRule
  | MaskRule;

/**
 * The plan by which a model is split over tensor-parallel ranks: rules by module names, in which `*` stands for one part of a
 * name, as in `h.*.mlp.c_fc`. Modules without a rule are complete on every rank. Plain data.
 */
export type TensorPlan = Readonly<Record<string, SplitRule>>;

/** A model with a tensor-parallel plan of its own. */
export interface TensorSplittable {
  readonly tensorPlan: TensorPlan;
}

/** Makes a {@link ColumnRule}. */
export function column(options: Partial<Omit<ColumnRule, "kind">> = {}): ColumnRule {
  return {
    kind: "column",
    parts: 1,
    unit: 1,
    readers: 1,
    uneven: false,
    input: undefined,
    output: "split",
    ...options,
  };
}

/** Makes a {@link RowRule}. */
export function row(options: Partial<Omit<RowRule, "kind">> = {}): RowRule {
  return { kind: "row", unit: 1, uneven: false, input: "split", output: undefined, ...options };
}

/** Makes a {@link VocabularyRule}. */
export function vocabulary(options: Partial<Omit<VocabularyRule, "kind">> = {}): VocabularyRule {
  return { kind: "vocabulary", input: undefined, ...options };
}

/** Makes a {@link FeaturesRule}. */
export function features(): FeaturesRule {
  return { kind: "features" };
}

/** Makes a {@link SequenceRule}. */
export function sequence(options: Partial<Omit<SequenceRule, "kind">> = {}): SequenceRule {
  return { kind: "sequence", input: "sequence", output: "sequence", ...options };
}

/** Makes a {@link ReplicatedRule}. */
export function replicated(): ReplicatedRule {
  return { kind: "replicated" };
}

/** Makes a {@link MaskRule}. */
export function mask(dim: number, size?: number): MaskRule {
  return { kind: "mask", dim, size };
}

/** Returns a test of whether a module's full name matches a plan's pattern. */
export function planTest(pattern: string): (name: string) => boolean {
  if (!pattern.includes("*")) return (name) => name === pattern;
  const parts = pattern.split(".");
  return (name) => {
    const given = name.split(".");
    return (
      given.length === parts.length && parts.every((part, place) => part === "*" || part === given[place])
    );
  };
}

/** Returns the plan for a part of a model in which every rank has all positions, even if the rest splits the sequence. */
export function unshared(plan: TensorPlan): TensorPlan {
  return Object.fromEntries(
    Object.entries(plan).flatMap(([name, rule]): [string, SplitRule][] => {
      if (rule.kind === "sequence" || rule.kind === "replicated") return [];
      if (rule.kind === "column" || rule.kind === "vocabulary")
        return [[name, { ...rule, input: "replicated" }]];
      return [[name, rule.kind === "row" ? { ...rule, output: "replicated" } : rule]];
    }),
  );
}

/** Returns the plan of a submodel, with its names prefixed by `name`. */
export function below(name: string, plan: TensorPlan): TensorPlan {
  return Object.fromEntries(Object.entries(plan).map(([pattern, rule]) => [`${name}.${pattern}`, rule]));
}
