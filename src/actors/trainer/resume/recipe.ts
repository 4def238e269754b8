import { createHash } from "node:crypto";
import * as optim from "../../../compute/optim/index.ts";
import { exampleRates, type TrainingPlan } from "../../../job/index.ts";
import type { JsonObject, JsonValue } from "../../../library/checkpoint/index.ts";
import type { Fingerprint } from "../../../library/data/index.ts";
import type { ModuleIdentity } from "./module-identity.ts";

/**
 * Everything that determines how a run trains, besides its settings and seed. Plain JSON in every manifest; a resumed
 * run compares its own with the checkpoint's.
 */
export type Recipe = JsonObject & {
  /** The job's module, and the user's files that it imports. */
  readonly job: ModuleIdentity;
  /** Steps in all, the job's own plan, and whether an option has replaced it. */
  readonly steps: { readonly total: number; readonly planned: JsonValue; readonly asked: boolean };
  readonly precision: string;
  readonly batchSize: number;
  readonly clip: JsonValue;
  /** How the batch grows to that size. Left out for a constant size. */
  readonly rampUp?: JsonValue;
  readonly calculatePerTokenLoss: boolean;
  /** Each optimizer as the job declares it, groups with the names of their parameters. */
  readonly optimizers: readonly JsonObject[];
  /** Each optimizer's schedule: its class, its numbers, a digest of its rates, and its rates at three steps. */
  readonly schedules: readonly JsonObject[];
  /** Identifies the data. Left out where the dataset has no fingerprint. */
  readonly data?: Fingerprint;
};

/** Parts of a {@link Recipe}. */
export interface RecipeParts {
  readonly module: ModuleIdentity;
  readonly training: TrainingPlan;
  readonly steps: number;
  readonly isStepsAsked: boolean;
  readonly batchSize: number;
  readonly precision: string;
  readonly optimizers: readonly optim.OptimizerSpec[];
  /** One per optimizer. */
  readonly schedules: readonly optim.Schedule[];
}

/** Builds the recipe, without the data. */
export function recipeOf(parts: RecipeParts): Recipe {
  const { module, training, steps, isStepsAsked, batchSize, precision, optimizers, schedules } = parts;
  return plainJson({
    job: module,
    steps: { total: steps, planned: plannedSteps(training), asked: isStepsAsked },
    precision,
    batchSize,
    clip: optim.clipRuleOf(training.clipNorm) ?? null,
    ...(training.rampUp && { rampUp: training.rampUp }),
    calculatePerTokenLoss: training.calculatePerTokenLoss ?? true,
    // The path of the optimizer's module, and rounding, do not change what is trained.
    optimizers: optimizers.map((spec) => ({ ...spec, module: undefined, rounding: undefined })),
    schedules: schedules.map((schedule) => describeSchedule(schedule, steps)),
  }) as Recipe;
}

/** A recipe whose data may become known late: saves before that leave it out. */
export class KnownRecipe {
  /** Resolves once the recipe is complete; rejects where the dataset's fingerprint fails. */
  readonly known: Promise<void>;
  #now: Recipe;

  constructor(recipe: Recipe, fingerprint: Promise<Fingerprint>) {
    this.#now = recipe;
    this.known = fingerprint.then((data) => {
      this.#now = { ...this.#now, data };
    });
    // Rejection is delivered to waiters; avoid an unhandled rejection here.
    this.known.catch(() => {});
  }

  /** The recipe as far as it is known. */
  get now(): Recipe {
    return this.#now;
  }
}

/** Returns the recipe in a manifest; older versions have none, or an incomplete one. */
export function recipeIn(state: { readonly recipe?: JsonObject }): Partial<Recipe> {
  return (state.recipe ?? {}) as Partial<Recipe>;
}

/** The length of the job's own plan. */
export function plannedSteps({ steps, epochs }: TrainingPlan): JsonValue {
  return steps ?? (epochs === undefined ? null : `${epochs} epochs`);
}

/** The parameter groups of a recipe's optimizer. */
export function groupsIn(optimizer: JsonObject): readonly optim.ParameterGroup[] {
  const { groups } = optimizer;
  return Array.isArray(groups) ? (groups as unknown as optim.ParameterGroup[]) : [];
}

function describeSchedule(schedule: optim.Schedule, numSteps: number): JsonObject {
  const numbers = Object.entries(schedule).filter(([, value]) => isScalar(value));
  return {
    kind: schedule.constructor.name,
    ...(Object.fromEntries(numbers) as JsonObject),
    // Describes a function without fields of its own.
    rates: createHash("sha256")
      .update(Float64Array.from(exampleRates(schedule)))
      .digest("hex")
      .slice(0, 16),
    ratesAt: Object.fromEntries(
      [1, Math.ceil(numSteps / 2), numSteps].map((step) => [`${step}`, schedule.lrAt(step)]),
    ),
  };
}

const isScalar = (value: unknown): boolean => ["number", "string", "boolean"].includes(typeof value);

/** The value as it will be read again: values that JSON lacks become texts. */
function plainJson(value: unknown): unknown {
  return JSON.parse(
    JSON.stringify(value, (_, part: unknown) =>
      typeof part === "number" && !Number.isFinite(part) ? String(part) : part,
    ),
  );
}
