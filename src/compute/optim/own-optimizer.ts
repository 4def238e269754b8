import { callUser, describeValue, TroupeError } from "../../errors/index.ts";
import { type DefinedIn, Definitions } from "../definitions/index.ts";
import type { NamedShapes } from "./parameter-groups.ts";
import { CommonOptimizer, type CommonSpec, type OptimizerOptions } from "./parameter-options.ts";
import type { OptimizerKind, OwnRule } from "./update-rule.ts";

/** An optimizer of a job's own, as plain data. */
export interface OwnSpec<Settings = unknown> extends CommonSpec, DefinedIn {
  readonly kind: "own";
  /** Plain data: its settings besides those of every optimizer. */
  readonly settings: Settings;
}

const defined = new Definitions<(spec: OwnSpec<never>) => OwnRule>("optimizer");

class OwnOptimizer<Settings> extends CommonOptimizer implements OwnSpec<Settings> {
  readonly kind = "own";
  readonly module: string;
  readonly name: string;
  readonly settings: Settings;

  constructor(where: DefinedIn, parameters: NamedShapes, options: OptimizerOptions, settings: Settings) {
    super(parameters, options, { lr: 1e-3, weightDecay: 0 });
    this.module = where.module;
    this.name = where.name;
    this.settings = settings;
  }
}

/**
 * Defines an optimizer where a module is imported, at its top level; shards, which update parameters in threads of their own,
 * import the module too. See {@link UpdateRule} for the contract of a rule.
 * @param module - `import.meta.url` of the module
 * @param name - unique in it
 * @param rule - makes a shard's rule from an optimizer's spec
 * @returns makes the optimizer for a model's parameters, for a job to return from `optimizer`
 * @throws {TroupeError} `DEFINITION` for a module that is no URL, and if name or rule is missing
 */
export function defineOptimizer<Settings>(
  module: string,
  name: string,
  rule: (spec: OwnSpec<Settings>) => OwnRule,
): (parameters: NamedShapes, options: OptimizerOptions, settings: Settings) => OwnSpec<Settings> {
  if (typeof name !== "string" || typeof rule !== "function")
    throw new TroupeError("DEFINITION", {
      where: "defineOptimizer",
      expected: "a module, a name and a rule",
      got: [module, name, rule].map(describeValue).join(", "),
      hint: 'defineOptimizer(import.meta.url, "name", (spec) => ({ … }))',
    });
  defined.define({ module, name }, rule as (spec: OwnSpec<never>) => OwnRule);
  return (parameters, options, settings) => new OwnOptimizer({ module, name }, parameters, options, settings);
}

/** Loads the rules of jobs' own optimizers in this thread. @throws {TroupeError} `DEFINITION` */
export async function loadOptimizers(specs: Iterable<{ readonly kind: string }>): Promise<void> {
  for (const spec of specs) if (spec.kind === "own") await defined.load(spec as OwnSpec);
}

/** All optimizers of jobs: their rules come from modules that this thread has imported. */
export const own: OptimizerKind<OwnSpec> = {
  rule: (spec) => {
    const { name } = spec;
    const rule = callUser(`the rule of optimizer ${name}`, () => defined.get(spec)(spec as OwnSpec<never>));
    return {
      ...rule,
      stateOf: (stretch) => callUser(`stateOf(…) of optimizer ${name}`, () => rule.stateOf(stretch)),
      update: (share, step) => watched(`update(…) of optimizer ${name}`, () => rule.update(share, step)),
    };
  },
};

/** Wraps a generator so that each of its turns counts as a call into the user's code. */
function* watched<T, Next>(what: string, begin: () => Generator<T, void, Next>): Generator<T, void, Next> {
  const turns = callUser(what, begin);
  for (let turn = callUser(what, () => turns.next()); turn.done !== true; ) {
    const given = yield turn.value;
    turn = callUser(what, () => turns.next(given));
  }
}
