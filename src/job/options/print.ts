import { stringify } from "smol-toml";
import { isPlain } from "../../errors/index.ts";
import { type CommandOptions, readCommand } from "./command.ts";
import { type Given, type Layers, leavesOf } from "./layers.ts";
import { describeStandard, groups, type Option, objectIn, optionsOf } from "./option.ts";
import type { RuntimeOptions } from "./options.generated.ts";
import { readRuntime } from "./read.ts";
import { commandSchema } from "./schema.ts";
import type { RuntimeSettings } from "./settings.ts";
import { settingsOf } from "./settle.ts";
import { isWritable } from "./texts.ts";

/**
 * Prints every option with its value and source, as TOML that `--config` reads.
 * @param command - merged over the job's and the checkpoint's @param job - all settings of the job
 */
export function printConfig(command: CommandOptions, job: Readonly<Record<string, unknown>>): string {
  const settled = settledBy(settingsOf(readRuntime(command.runtime)));
  const entries = optionsOf(commandSchema)
    .filter((option) => isWritable(option) && !isSubjectOf(option, command.layers.values))
    .map((option) => entryOf(option, command.layers, settled));
  const settings = Object.entries(job).map(([name, value]) => ({
    table: "set",
    heading: "Settings of the job",
    line: line(name, value, command.layers.sourceOf(["set", name])),
  }));
  return tables([...entries, ...settings]);
}

/** Prints a script's options, whose sources are the script and the defaults. */
export function printScript(options: RuntimeOptions): string {
  const given = [...leavesOf({ ...options })].map((leaf): Given => ({ ...leaf, origin: "script", by: "" }));
  return printConfig(readCommand(given), {});
}

interface Entry {
  /** Empty for an option outside all tables. */
  readonly table: string;
  readonly heading: string;
  readonly line: string;
}

function entryOf(option: Option, layers: Layers, settled: ReadonlyMap<string, unknown>): Entry {
  const value = valueAt(layers.values, option) ?? settled.get(option.name) ?? option.standard;
  const key = option.path.at(-1) ?? "";
  const table = option.path.slice(0, -1).join(".");
  const source = layers.sourceOf(option.path);
  return {
    table,
    heading: groups[option.group],
    line: value === undefined ? `# ${key}: ${describeStandard(option)}` : line(key, value, source),
  };
}

const COMMENT_COLUMN = 40;

function line(key: string, value: unknown, source: ReturnType<Layers["sourceOf"]>): string {
  const assignment = `${key} = ${inline(value)}`;
  const origin = [source?.origin ?? "default", source?.by ?? ""].join(" ").trim();
  return `${assignment.padEnd(COMMENT_COLUMN)} # ${origin}`;
}

/** Prints a rule on the line of its option. */
function inline(value: unknown): string {
  if (!isPlain(value))
    return stringify({ value })
      .trim()
      .replace(/^value = /, "");
  const fields = Object.entries(value).filter(([, field]) => field !== undefined);
  return `{ ${fields.map(([name, field]) => `${name} = ${inline(field)}`).join(", ")} }`;
}

/** Whether options of this subject were given; these are printed one by one. */
function isSubjectOf(option: Option, values: Record<string, unknown>): boolean {
  return objectIn(option.schema) !== undefined && isPlain(valueAt(values, option));
}

/** Options outside tables come first, as TOML requires; a table with comments alone is left out because it would turn its subject on. */
function tables(entries: readonly Entry[]): string {
  const names = [...new Set(["", ...entries.map(({ table }) => table)])];
  const parts = names.map((name) => {
    const own = entries.filter(({ table }) => table === name);
    if (name === "") return topLevel(own);
    const isEmpty = own.every(({ line }) => line.startsWith("#"));
    return [isEmpty ? `# [${name}]` : `[${name}]`, ...own.map(({ line }) => line)].join("\n");
  });
  return `${parts.join("\n\n")}\n`;
}

function topLevel(entries: readonly Entry[]): string {
  const headings = [...new Set(entries.map(({ heading }) => heading))];
  const parts = headings.map((name) => {
    const own = entries.filter(({ heading }) => heading === name);
    return [`# ${name}`, ...own.map(({ line }) => line)].join("\n");
  });
  return parts.join("\n\n");
}

function valueAt(values: Record<string, unknown>, { path }: Option): unknown {
  return path.reduce<unknown>((value, name) => (isPlain(value) ? value[name] : undefined), values);
}

/** Values that are not constants of the schema but follow from the settled options. */
function settledBy(settings: RuntimeSettings): ReadonlyMap<string, unknown> {
  const { layout, execution, telemetry } = settings;
  return new Map<string, unknown>([
    ["schedule", layout.schedule],
    ["threadsPerRank", execution.threadsPerRank],
    ["traceEvery", telemetry.traceEvery],
    ["memory.everySteps", telemetry.memory.everySteps],
  ]);
}
