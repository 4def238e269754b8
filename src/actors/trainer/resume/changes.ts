import type { ParameterGroup } from "../../../compute/optim/index.ts";
import { isRecord } from "../../../errors/index.ts";
import type { RunChange } from "../../../job/events/index.ts";
import type { JobConfig } from "../../../job/index.ts";
import type { JsonValue, TrainerState } from "../../../library/checkpoint/index.ts";
import type { ModuleIdentity } from "./module-identity.ts";
import { groupsIn, type Recipe, recipeIn } from "./recipe.ts";

/** The resumed run as it is now, to compare with its checkpoint. */
export interface PresentRun {
  readonly config: JobConfig;
  readonly recipe: Recipe;
}

/** Lists differences of a resumed run from its checkpoint's, by name. Fields that an older checkpoint lacks count as equal. */
export function changesSince(before: TrainerState, now: PresentRun): RunChange[] {
  const recipe = recipeIn(before);
  const [was, is] = [recipe.data, now.recipe.data];
  return [
    ...(isRecord(before.job) ? fieldChanges("settings", "", before.job, now.config) : []),
    ...runChanges(recipe, now.recipe),
    ...trainingChanges(recipe, now.recipe, before.batchSize),
    ...(was === undefined || is === undefined ? [] : fieldChanges("data", "data.", was, is)),
  ];
}

/** Every name that a change can have, so that a misspelled one is found. */
export function changeableNames({ config, recipe }: PresentRun): string[] {
  const { optimizers, schedules, data = {} } = recipe;
  const fieldsOf = (kind: string, all: readonly Fields[], ...more: string[]) =>
    all.flatMap((fields, index) =>
      [...Object.keys(flat(fields)), ...more].map((field) => `${placeOf(kind, index, all.length)}.${field}`),
    );
  return [
    ...Object.keys(config),
    ...["steps", "precision", "job", "optimizers"],
    ...Object.keys(flat(pick(recipe, "batchSize", "rampUp", "clip", "calculatePerTokenLoss"))),
    ...fieldsOf(
      "optimizer",
      optimizers.map(({ groups: _, ...fields }) => fields),
      "lrFactor",
      "weightDecay",
    ),
    ...fieldsOf(
      "schedule",
      schedules.map(({ ratesAt: _, ...fields }) => fields),
    ),
    ...Object.keys(data).map((name) => `data.${name}`),
  ];
}

/** The settings of a checkpoint's run; empty where it has none. */
export function settingsIn({ job }: TrainerState): JobConfig {
  return isRecord(job) ? (job as JobConfig) : {};
}

function runChanges(before: Partial<Recipe>, now: Recipe): RunChange[] {
  const changes: RunChange[] = [];
  const note = (name: string, was: JsonValue | undefined, is: JsonValue) => {
    if (was !== undefined && was !== is) changes.push({ of: "run", name, was: wordOf(was), is: wordOf(is) });
  };
  note("steps", before.steps?.total, now.steps.total);
  note("precision", before.precision, now.precision);
  const { job } = before;
  // The job's path may differ; its text may not.
  if (job !== undefined && job.sha256 !== now.job.sha256) note("job", moduleWord(job), moduleWord(now.job));
  // Imports that were added or removed count through the text that imports them.
  for (const [file, sha256] of Object.entries(job?.imports ?? {})) {
    const is = now.job.imports?.[file] ?? sha256;
    if (sha256 !== is) note(`job.${file}`, moduleWord({ file, sha256 }), moduleWord({ file, sha256: is }));
  }
  return changes;
}

function moduleWord({ file, sha256 }: ModuleIdentity): string {
  return sha256 === "" ? file : `${file} (sha256 ${sha256.slice(0, 12)})`;
}

function trainingChanges(before: Partial<Recipe>, now: Recipe, batchSize: number | undefined): RunChange[] {
  const was = {
    ...pick(before, "batchSize", "rampUp", "clip", "calculatePerTokenLoss"),
    ...(batchSize !== undefined && { batchSize }),
  };
  const is = pick(now, ...(Object.keys(was) as (keyof typeof was)[]));
  return [
    ...fieldChanges("training", "", flat(was), flat(is)),
    ...(before.optimizers === undefined ? [] : optimizerChanges(before.optimizers, now.optimizers)),
    ...(before.schedules === undefined ? [] : scheduleChanges(before, now)),
  ];
}

function optimizerChanges(before: Recipe["optimizers"], now: Recipe["optimizers"]): RunChange[] {
  if (before.length !== now.length)
    return [{ of: "training", name: "optimizers", was: `${before.length}`, is: `${now.length}` }];
  return before.flatMap((optimizer, index) => {
    const name = placeOf("optimizer", index, before.length);
    const { groups: _was, ...was } = optimizer;
    const { groups: _is, ...is } = now[index] ?? {};
    const groups = groupChanges(name, groupsIn(optimizer), groupsIn(now[index] ?? {}));
    return [...fieldChanges("training", `${name}.`, flat(was), flat(is)), ...groups];
  });
}

/** Compares parameters that both optimizers train; the model shows which there are. */
function groupChanges(
  optimizer: string,
  before: readonly ParameterGroup[],
  now: readonly ParameterGroup[],
): RunChange[] {
  const groupOf = new Map(before.flatMap((group) => group.names.map((name) => [name, group] as const)));
  const pairs = now.flatMap((is) =>
    is.names.flatMap((name) => {
      const was = groupOf.get(name);
      return was === undefined ? [] : [{ name, was, is }];
    }),
  );
  return (["lrFactor", "weightDecay"] as const).flatMap((field) => {
    const others = pairs.filter(({ was, is }) => was[field] !== is[field]);
    const [first] = others;
    if (first === undefined) return [];
    const more = others.length === 1 ? "" : ` and ${others.length - 1} more`;
    return [
      {
        of: "training" as const,
        name: `${optimizer}.${field}`,
        was: `${first.was[field]} (of ${first.name}${more})`,
        is: `${first.is[field]}`,
      },
    ];
  });
}

function scheduleChanges({ schedules = [], optimizers = [] }: Partial<Recipe>, now: Recipe): RunChange[] {
  if (schedules.length !== now.schedules.length) return [];
  return schedules.flatMap((schedule, index) => {
    const name = placeOf("schedule", index, schedules.length);
    // Its peak is the optimizer's rate, which is compared there.
    const { peakLr: _was, lr: _wasLr, rates: wasRates, ratesAt: wasAt, ...was } = schedule;
    const { peakLr: _is, lr: _isLr, rates: isRates, ratesAt: isAt, ...is } = now.schedules[index] ?? {};
    const fields = fieldChanges("training", `${name}.`, flat(was), flat(is));
    const isRateSame = optimizers[index]?.lr === now.optimizers[index]?.lr;
    if (fields.length > 0 || !isRateSame || wasRates === isRates) return fields;
    return [{ of: "training", name: `${name}.rates`, was: ratesWord(wasAt), is: ratesWord(isAt) }];
  });
}

/** "0.001 at step 1, 0.0005 at step 20, 0 at step 40"; checkpoints of older versions have no rates to show. */
function ratesWord(ratesAt: JsonValue | undefined): string {
  if (!isRecord(ratesAt)) return "others, which this checkpoint does not name";
  return Object.entries(ratesAt)
    .map(([step, rate]) => `${Number(Number(rate).toPrecision(6))} at step ${step}`)
    .join(", ");
}

type Fields = Readonly<Record<string, JsonValue | undefined>>;

function fieldChanges(of: RunChange["of"], prefix: string, before: Fields, now: Fields): RunChange[] {
  const names = [...new Set([...Object.keys(before), ...Object.keys(now)])];
  return names.flatMap((name) => {
    const [was, is] = [before[name], now[name]];
    // A setting that the job did not have then has no value to differ from.
    if (JSON.stringify(was) === JSON.stringify(is) || (of === "settings" && was === undefined)) return [];
    return [{ of, name: `${prefix}${name}`, was: wordOf(was), is: wordOf(is) }];
  });
}

/** Every value that is not a table, by its path joined with dots. */
function flat(table: Fields, prefix = ""): Fields {
  return Object.fromEntries(
    Object.entries(table).flatMap(([name, value]) =>
      isRecord(value) ? Object.entries(flat(value, `${prefix}${name}.`)) : [[`${prefix}${name}`, value]],
    ),
  );
}

function pick<T extends object, Name extends keyof T>(from: T, ...names: Name[]): Pick<T, Name> {
  return Object.fromEntries(
    names.filter((name) => from[name] !== undefined).map((name) => [name, from[name]]),
  ) as Pick<T, Name>;
}

function placeOf(name: string, index: number, count: number): string {
  return count === 1 ? name : `${name}.${index}`;
}

function wordOf(value: JsonValue | undefined): string {
  if (value === undefined || value === null) return "none";
  return typeof value === "string" ? value : JSON.stringify(value);
}
