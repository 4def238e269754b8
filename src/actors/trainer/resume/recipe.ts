import { createHash } from "node:crypto";
import {
  clipRuleOf,
  type OptimizerSpec,
  type ParameterGroup,
  type Schedule,
} from "../../../compute/optim/index.ts";
import { exampleRates, type TrainingPlan } from "../../../job/index.ts";
import type { JsonObject, JsonValue } from "../../../library/checkpoint/index.ts";
import type { Fingerprint } from "../../../library/data/index.ts";
import type { ModuleIdentity } from "./module-identity.ts";

/**
 * What a run is trained by, beside its settings and its seed. Plain JSON: every manifest has it, and a run that goes on compares
 * its own with that of the checkpoint.
 */
export type Recipe = JsonObject & {
  /** The job's module, and what of the user's own it imports. */
  readonly job: ModuleIdentity;
  /** Steps in all, what the job itself has planned, and whether an option has put the total in its place. */
  readonly steps: { readonly total: number; readonly planned: JsonValue; readonly asked: boolean };
  readonly precision: string;
  readonly batchSize: number;
  readonly clip: JsonValue;
  /** How the batch grows to that size. Left out where it does not. */
  readonly rampUp?: JsonValue;
  readonly calculatePerTokenLoss: boolean;
  /** Each optimizer as the job has it, groups with the names of their parameters. */
  readonly optimizers: readonly JsonObject[];
  /** The schedule of each: its class, its own numbers, a digest of the rates that it gives, and these at three steps. */
  readonly schedules: readonly JsonObject[];
  /** What tells the data from other data. Left out where the dataset could not tell. */
  readonly data?: Fingerprint;
};

/** What a {@link Recipe} is made of. */
export interface RecipeParts {
  readonly module: ModuleIdentity;
  readonly training: TrainingPlan;
  readonly steps: number;
  readonly isStepsAsked: boolean;
  readonly batchSize: number;
  readonly precision: string;
  readonly optimizers: readonly OptimizerSpec[];
  /** One an optimizer. */
  readonly schedules: readonly Schedule[];
}

/** @returns the recipe, as it reads in a manifest, without the data */
export function recipeOf(parts: RecipeParts): Recipe {
  const { module, training, steps, isStepsAsked, batchSize, precision, optimizers, schedules } = parts;
  return plainJson({
    job: module,
    steps: { total: steps, planned: plannedSteps(training), asked: isStepsAsked },
    precision,
    batchSize,
    clip: clipRuleOf(training.clipNorm) ?? null,
    ...(training.rampUp && { rampUp: training.rampUp }),
    calculatePerTokenLoss: training.calculatePerTokenLoss ?? true,
    // Where a module of one's own lies, and how the run rounds, is not what it trains by.
    optimizers: optimizers.map((spec) => ({ ...spec, module: undefined, rounding: undefined })),
    schedules: schedules.map((schedule) => describeSchedule(schedule, steps)),
  }) as Recipe;
}

/** A recipe whose data may be told late: what is saved before does without it. */
export class KnownRecipe {
  /** Settled once all of it is known; rejects where the dataset cannot tell. */
  readonly known: Promise<void>;
  #now: Recipe;

  constructor(recipe: Recipe, fingerprint: Promise<Fingerprint>) {
    this.#now = recipe;
    this.known = fingerprint.then((data) => {
      this.#now = { ...this.#now, data };
    });
    // Whoever waits hears of it.
    this.known.catch(() => {});
  }

  /** As far as it is known. */
  get now(): Recipe {
    return this.#now;
  }
}

/** @returns what a manifest says of its run's recipe: of older versions nothing, of others maybe less than all */
export function recipeIn(state: { readonly recipe?: JsonObject }): Partial<Recipe> {
  return (state.recipe ?? {}) as Partial<Recipe>;
}

/** How long a job says that it lasts. */
export function plannedSteps({ steps, epochs }: TrainingPlan): JsonValue {
  return steps ?? (epochs === undefined ? null : `${epochs} epochs`);
}

/** The groups of a recipe's optimizer. */
export function groupsIn(optimizer: JsonObject): readonly ParameterGroup[] {
  const { groups } = optimizer;
  return Array.isArray(groups) ? (groups as unknown as ParameterGroup[]) : [];
}

function describeSchedule(schedule: Schedule, numSteps: number): JsonObject {
  const numbers = Object.entries(schedule).filter(([, value]) => isScalar(value));
  return {
    kind: schedule.constructor.name,
    ...(Object.fromEntries(numbers) as JsonObject),
    rates: ratesDigest(schedule),
    ratesAt: Object.fromEntries(
      [1, Math.ceil(numSteps / 2), numSteps].map((step) => [`${step}`, schedule.lrAt(step)]),
    ),
  };
}

/** The description of a function without fields of its own. */
function ratesDigest(schedule: Schedule): string {
  const rates = Float64Array.from(exampleRates(schedule));
  return createHash("sha256").update(rates).digest("hex").slice(0, 16);
}

function isScalar(value: unknown): boolean {
  return ["number", "string", "boolean"].includes(typeof value);
}

/** As it is read again: what JSON has no word for is a text. */
function plainJson(value: unknown): unknown {
  return JSON.parse(
    JSON.stringify(value, (_, part: unknown) =>
      typeof part === "number" && !Number.isFinite(part) ? String(part) : part,
    ),
  );
}
