import * as z from "zod";
import { TroupeError, whatWasMeant } from "../../errors/index.ts";
import { parted } from "./kinds.ts";
import { bare } from "./option.ts";
import { type Choice, type Conflict, relations } from "./relations.ts";
import { runtimeSchema } from "./schema.ts";

/** @returns the source of an option as the user wrote it: `--ranks`; empty in a script */
export type GivenBy = (path: readonly string[]) => string;

/** Reads the options of `Runtime.spawn`. @throws {TroupeError} `OPTION` naming option, expected and given value, and source */
export function readRuntime(given: unknown, by: GivenBy = () => ""): Choice {
  const choice = { given: given as Choice["given"], chosen: read(runtimeSchema, given, by) };
  for (const { conflict } of relations) {
    const found = conflict(choice);
    if (found !== undefined) throw refusal(found, by(found.option.split(".")));
  }
  return choice;
}

/** Reads options by their schema alone, with the source of each for errors. @throws {TroupeError} `OPTION` */
export function read<Schema extends z.ZodType>(
  schema: Schema,
  given: unknown,
  by: GivenBy,
): z.output<Schema> {
  const result = schema.safeParse(given);
  if (result.success) return result.data;
  const { issues } = result.error;
  // A misspelled name may be the cause of a missing one: report it first.
  const issue = issues.find(({ code }) => code === "unrecognized_keys") ?? issues[0];
  if (issue === undefined) throw new Error("zod refuses without an issue");
  const path = innermost(issue);
  const names = path.names.map(String);
  if (path.issue.code === "unrecognized_keys") throw unknown(schema, names, path.issue.keys, by);
  const got = names.reduce((value, name) => (value as Record<string, unknown> | undefined)?.[name], given);
  throw refusal({ option: names.join(".") || "options", ...parted(path.issue.message), got }, by(names));
}

/** Replaces the issue of a union by the one inside the form that the user meant. */
function innermost(
  issue: z.core.$ZodIssue,
  names: readonly PropertyKey[] = [],
): { readonly issue: z.core.$ZodIssue; readonly names: readonly PropertyKey[] } {
  const path = [...names, ...issue.path];
  if (issue.code !== "invalid_union") return { issue, names: path };
  const inside = issue.errors
    .flat()
    .find(({ code, path }) => code === "unrecognized_keys" || path.length > 0);
  return inside === undefined ? { issue, names: path } : innermost(inside, path);
}

function unknown(
  schema: z.ZodType,
  path: readonly string[],
  keys: readonly string[],
  by: GivenBy,
): TroupeError {
  const [key = ""] = keys;
  const subject = path.length === 0 ? "an option" : `an option of ${path.join(".")}`;
  const source = from(by([...path, key]));
  const hint = [whatWasMeant(key, namesAt(schema, path)), ...source].join("; ");
  return new TroupeError("OPTION", {
    where: "options",
    expected: subject,
    got: keys.join(", "),
    hint,
    fields: { option: [...path, key].join("."), got: key },
  });
}

/** Names of a subject's options, in all its forms. */
function namesAt(schema: z.core.$ZodType, [name, ...rest]: readonly string[]): readonly string[] {
  const shapes = objectsIn(schema).map(({ shape }) => shape as Record<string, z.core.$ZodType>);
  if (name === undefined) return [...new Set(shapes.flatMap((shape) => Object.keys(shape)))];
  return shapes.flatMap((shape) => (shape[name] === undefined ? [] : namesAt(shape[name], rest)));
}

function objectsIn(schema: z.core.$ZodType): z.ZodObject[] {
  const type = bare(schema);
  if (type instanceof z.ZodObject) return [type];
  return type instanceof z.ZodUnion ? type.options.flatMap(objectsIn) : [];
}

function refusal({ option, expected, got, hint }: Conflict, by: string): TroupeError {
  const hints = [...(hint === undefined ? [] : [hint]), ...from(by)];
  const advice = hints.length === 0 ? undefined : hints.join("; ");
  return new TroupeError("OPTION", {
    where: "options",
    expected: `${option} to be ${expected}`,
    got: by === "" ? written(got) : shown(got),
    hint: advice,
    fields: { option, got },
  });
}

const from = (by: string) => (by === "" ? [] : [`from ${by}`]);

/** A value as a script writes it: "2" is not a number. */
function written(value: unknown): string {
  const isNumeric = typeof value === "string" && value.trim() !== "" && Number.isFinite(Number(value));
  return isNumeric ? JSON.stringify(value) : shown(value);
}

function shown(value: unknown): string {
  if (typeof value !== "object" || value === null) return String(value);
  return JSON.stringify(value) ?? String(value);
}
