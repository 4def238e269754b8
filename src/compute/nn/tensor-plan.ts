/** What a tensor-parallel rank has of an activation: all of it, its share of the positions, or its share of the features. */
export type Held = "whole" | "sequence" | "split";

/** An affine map split by outputs: every rank makes some of the features. */
export interface ColumnRule {
  readonly kind: "column";
  /** Equal blocks that the outputs consist of, each split by itself: 3 for a fused query-key-value map. */
  readonly parts: number;
  /** Outputs that stay together, such as the width of a head. */
  readonly unit: number;
  /**
   * How many units of another column map read each of these: query heads that share a key/value head. Where the ranks do not
   * divide the units but divide their readers, every rank has the whole map, and makes the units that its readers read: one
   * for all of them, or one each.
   */
  readonly readers: number;
  /**
   * Whether the last ranks may hold less, where their number does not divide the units. What they lack is zero, never stored,
   * and stays zero: the row behind this map reads zeros there, whatever lies between.
   */
  readonly uneven: boolean;
  /** Undefined: "sequence" where the sequence is split between the layers, else "whole". */
  readonly input: "whole" | "sequence" | undefined;
  readonly output: "split" | "whole";
}

/** An affine map split by inputs: every rank sums over some of the features, then the sums are added over the ranks. */
export interface RowRule {
  readonly kind: "row";
  /** Inputs that stay together. */
  readonly unit: number;
  /** Whether the last ranks may hold less, as the column in front of it. Its input must be split. */
  readonly uneven: boolean;
  readonly input: Held;
  /** Undefined: "sequence" where the sequence is split between the layers, else "whole". */
  readonly output: "whole" | "sequence" | undefined;
}

/** A token embedding or a vocabulary head split by words. The last ranks may hold padding; it is never stored. */
export interface VocabularyRule {
  readonly kind: "vocabulary";
  /** Of a head. Undefined: "sequence" where the sequence is split between the layers, else "whole". */
  readonly input: "whole" | "sequence" | undefined;
}

/**
 * A table split by the features of its rows, such as a bias with a number for each head: every rank looks up its own. The
 * last ranks may hold less.
 */
export interface FeaturesRule {
  readonly kind: "features";
}

/**
 * A module between the split layers. Where the sequence is split there it computes on the rank's share of the positions,
 * so the gradients of its parameters are summed over the ranks and its dropouts mask that share; elsewhere the rule does
 * nothing.
 */
export interface SequenceRule {
  readonly kind: "sequence";
  /** "whole": the first such module, which takes its share of what every rank has. */
  readonly input: "whole" | "sequence";
  /** "whole": the last such module, whose output every rank gets whole. */
  readonly output: "whole" | "sequence";
}

/**
 * A module between the split layers that needs all positions, such as a mixture of experts. Where the sequence is split
 * there, it gets them gathered, every rank computes the same, and keeps its share of what has positions; elsewhere the
 * rule does nothing.
 */
export interface WholeRule {
  readonly kind: "whole";
}

/** A dropout whose input is split over the ranks along `dim`, such as attention weights by heads. */
export interface MaskRule {
  readonly kind: "mask";
  readonly dim: number;
  /** Of the whole along `dim`, where the ranks may not divide it; undefined where they do. */
  readonly size: number | undefined;
}

/** How one module is split. Plain data. */
export type SplitRule =
  | ColumnRule
  | RowRule
  | VocabularyRule
  | FeaturesRule
  | SequenceRule
  | WholeRule
  | MaskRule;

/**
 * How a model is split over tensor-parallel ranks: rules by module names, in which `*` stands for one part of a name, as
 * in `h.*.mlp.c_fc`. What no rule names is whole on every rank. Plain data.
 */
export type TensorPlan = Readonly<Record<string, SplitRule>>;

/** A model that knows how it is split best. */
export interface TensorSplittable {
  readonly tensorPlan: TensorPlan;
}

/** @returns a {@link ColumnRule} */
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

/** @returns a {@link RowRule} */
export function row(options: Partial<Omit<RowRule, "kind">> = {}): RowRule {
  return { kind: "row", unit: 1, uneven: false, input: "split", output: undefined, ...options };
}

/** @returns a {@link VocabularyRule} */
export function vocabulary(options: Partial<Omit<VocabularyRule, "kind">> = {}): VocabularyRule {
  return { kind: "vocabulary", input: undefined, ...options };
}

/** @returns a {@link FeaturesRule} */
export function features(): FeaturesRule {
  return { kind: "features" };
}

/** @returns a {@link SequenceRule} */
export function sequence(options: Partial<Omit<SequenceRule, "kind">> = {}): SequenceRule {
  return { kind: "sequence", input: "sequence", output: "sequence", ...options };
}

/** @returns a {@link WholeRule} */
export function whole(): WholeRule {
  return { kind: "whole" };
}

/** @returns a {@link MaskRule} */
export function mask(dim: number, size?: number): MaskRule {
  return { kind: "mask", dim, size };
}

/** @returns whether a module's full name is one that a rule of a plan, by its pattern, means */
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

/** The same plan where every rank has all positions, whether others of the model are shared or not. */
export function unshared(plan: TensorPlan): TensorPlan {
  return Object.fromEntries(
    Object.entries(plan).flatMap(([name, rule]): [string, SplitRule][] => {
      if (rule.kind === "sequence" || rule.kind === "whole") return [];
      if (rule.kind === "column" || rule.kind === "vocabulary") return [[name, { ...rule, input: "whole" }]];
      return [[name, rule.kind === "row" ? { ...rule, output: "whole" } : rule]];
    }),
  );
}

/** The same plan for a model that stands below `name` in another. */
export function below(name: string, plan: TensorPlan): TensorPlan {
  return Object.fromEntries(Object.entries(plan).map(([pattern, rule]) => [`${name}.${pattern}`, rule]));
}
