import { atLeastZero } from "./checks.ts";
import { optionError, refuseUnknown } from "./option-error.ts";

/** Parameters that are updated alike. Plain data. */
export interface ParameterGroup {
  /** Full names, in the order of the model. */
  readonly names: readonly string[];
  /** Factor on the learning rate of the step. */
  readonly lrFactor: number;
  /** Decoupled decay; each step takes learning rate × weightDecay × value off. */
  readonly weightDecay: number;
}

/** An exception for the parameters that match. The first rule that matches wins. */
export interface GroupRule {
  readonly match: RegExp | ((name: string, shape: readonly number[]) => boolean);
  readonly lrFactor?: number;
  readonly weightDecay?: number;
}

/** The parameters that decay if no rule decides: those of two or more dims, or all. */
export type Decay = (typeof DECAYS)[number];

export const DECAYS = ["matrices", "every parameter"] as const;

/** Names with shapes, as `module.namedParameters()` gives. */
export type NamedShapes = Iterable<readonly [name: string, parameter: { readonly shape: readonly number[] }]>;

/**
 * @returns an optimizer's first argument, checked
 * @throws {TroupeError} `OPTIMIZER_OPTION` for anything without names and shapes, such as `module.parameters()`
 */
export function checkNamedShapes(given: unknown): NamedShapes {
  const isIterable =
    typeof (given as Partial<NamedShapes> | null | undefined)?.[Symbol.iterator] === "function";
  const named = isIterable && typeof given !== "string" ? [...(given as Iterable<unknown>)] : undefined;
  if (named?.every(isNamedShape) === true) return named;
  const got = named === undefined ? typeof given : "a list without names";
  throw optionError(
    "parameters",
    "names with shapes, as the job's optimizer(…) and namedParameters() give",
    got,
  );
}

function isNamedShape(entry: unknown): entry is readonly [string, { readonly shape: readonly number[] }] {
  if (!Array.isArray(entry)) return false;
  const [name, parameter] = entry as [unknown, { readonly shape?: unknown } | null | undefined];
  return typeof name === "string" && Array.isArray(parameter?.shape);
}

/**
 * Sorts parameters into groups of equal treatment. Biases and norm weights (fewer than two dims) do not decay,
 * unless `decay` or a rule says so.
 * @throws `OPTIMIZER_OPTION` for no parameters, a rule that matches none or has other options, or a negative factor or decay
 */
export function groupParameters(
  parameters: NamedShapes,
  options: { weightDecay: number; decay: Decay; rules: readonly GroupRule[] },
): ParameterGroup[] {
  for (const rule of options.rules) refuseUnknown(rule, { match: true, lrFactor: true, weightDecay: true });
  const groups = new Map<string, { names: string[]; lrFactor: number; weightDecay: number }>();
  const idle = new Set(options.rules);
  for (const [name, { shape }] of parameters) {
    const rule = options.rules.find((candidate) => matches(candidate, name, shape));
    if (rule) idle.delete(rule);
    const lrFactor = rule?.lrFactor ?? 1;
    const decays = options.decay === "every parameter" || shape.length >= 2;
    const weightDecay = rule?.weightDecay ?? (decays ? options.weightDecay : 0);
    const key = `${lrFactor} ${weightDecay}`;
    const group = groups.get(key) ?? { names: [], lrFactor, weightDecay };
    group.names.push(name);
    groups.set(key, group);
  }
  checkGroups([...groups.values()], [...idle]);
  return [...groups.values()];
}

function matches(rule: GroupRule, name: string, shape: readonly number[]): boolean {
  return rule.match instanceof RegExp ? matchesName(rule.match, name) : rule.match(name, shape);
}

/** Whether a pattern matches a parameter's name. With the flags g and y `test` would begin where its last match ended. */
export function matchesName(pattern: RegExp, name: string): boolean {
  return name.search(pattern) >= 0;
}

function checkGroups(groups: readonly ParameterGroup[], idle: readonly GroupRule[]): void {
  if (groups.length === 0) throw optionError("parameters", "at least one", "none");
  for (const { match } of idle) throw optionError("groups", "rules that match a parameter", String(match));
  for (const { lrFactor, weightDecay } of groups) {
    atLeastZero("lrFactor", lrFactor);
    atLeastZero("weightDecay", weightDecay);
  }
}
