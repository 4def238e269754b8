import { stringify } from "smol-toml";
import { type CommandOptions, readCommand } from "./command.ts";
import { type Given, isRecord, type Layers, leavesOf } from "./layers.ts";
import { describeStandard, groups, type Option, objectIn, optionsOf } from "./option.ts";
import type { RuntimeOptions } from "./options.generated.ts";
import { readRuntime } from "./read.ts";
import { commandSchema } from "./schema.ts";
import type { RuntimeSettings } from "./settings.ts";
import { settingsOf } from "./settle.ts";
import { isWritable } from "./texts.ts";

/**
 * Every option with its value and where that comes from, as TOML that `--config` reads.
 * @param command - with what the job and the checkpoint say laid beneath what was given
 * @param job - the settings of the job, with their values
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

/** @returns the same of a script's options, which are its own or the defaults */
export function printScript(options: RuntimeOptions): string {
  const given = [...leavesOf({ ...options })].map((leaf): Given => ({ ...leaf, origin: "script", by: "" }));
  return printConfig(readCommand(given), {});
}

interface Entry {
  /** Empty for what stands in no table. */
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

/** A rule stays on the line of its option. */
function inline(value: unknown): string {
  if (!isRecord(value))
    return stringify({ value })
      .trim()
      .replace(/^value = /, "");
  const fields = Object.entries(value).filter(([, field]) => field !== undefined);
  return `{ ${fields.map(([name, field]) => `${name} = ${inline(field)}`).join(", ")} }`;
}

/** Whether an option's own options have been given, which are printed each by itself. */
function isSubjectOf(option: Option, values: Record<string, unknown>): boolean {
  return objectIn(option.schema) !== undefined && isRecord(valueAt(values, option));
}

/** What stands in no table comes first, as TOML has it; a table of comments alone would turn its subject on. */
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
  return path.reduce<unknown>((value, name) => (isRecord(value) ? value[name] : undefined), values);
}

/** What is no constant of the schema, and known once the rest is. */
function settledBy(settings: RuntimeSettings): ReadonlyMap<string, unknown> {
  const { layout, execution, telemetry } = settings;
  return new Map<string, unknown>([
    ["schedule", layout.schedule],
    ["threadsPerRank", execution.threadsPerRank],
    ["traceEvery", telemetry.traceEvery],
    ["memory.everySteps", telemetry.memory.everySteps],
  ]);
}
