import * as z from "zod";

/** What belongs together, in the order in which help and docs tell it; the heading of each. */
export const groups = {
  layout: "Layout",
  training: "Training",
  precision: "Precision",
  execution: "Memory and speed",
  offload: "Offload",
  checkpoint: "Checkpoints",
  supervision: "Supervision",
  anomalies: "Anomalies",
  telemetry: "Telemetry",
  dashboard: "Dashboard",
  output: "Output",
  slowdown: "Experiments",
} as const;

/** The name of one of {@link groups}. */
export type GroupName = keyof typeof groups;

/** What is known of an option beside its type. */
export interface OptionFacts {
  readonly group: GroupName;
  /** One sentence without its full stop. */
  readonly meaning: string;
  /** What a command line calls it, `--ranks <n>`. Empty: there is no flag of its own. */
  readonly flag: string;
  /** Other flags that give it, and what each means. */
  readonly also?: Readonly<Record<string, string>>;
  readonly unit?: "bytes" | "ms" | "s";
  /** What stands where it is left out, in words: for what is no constant of the schema. */
  readonly otherwise?: string;
  /** The TypeScript type, where it is another's. */
  readonly type?: string;
}

const facts = z.registry<OptionFacts>();
const names = z.registry<{ readonly interfaceName: string; readonly meaning: string }>();

/** Says of an option what its type does not. */
export function option<Type extends z.ZodType>(
  type: Type,
  flag: string,
  group: GroupName,
  meaning: string,
  more: Pick<OptionFacts, "also" | "unit" | "otherwise" | "type"> = {},
): Type {
  facts.add(type, { group, meaning, flag, ...more });
  return type;
}

/** Gives options of one subject the name of their TypeScript interface. */
export function named<Type extends z.ZodType>(interfaceName: string, meaning: string, type: Type): Type {
  names.add(type, { interfaceName, meaning });
  return type;
}

/** @returns what {@link named} said */
export function interfaceOf(type: z.core.$ZodType) {
  return names.get(type);
}

/** One option of a schema, wherever it stands. */
export interface Option extends OptionFacts {
  /** From the outside in: `["checkpoint", "everySteps"]`. */
  readonly path: readonly string[];
  /** The path as sentences have it: `checkpoint.everySteps`. */
  readonly name: string;
  readonly schema: z.core.$ZodType;
  /** What stands where it is left out; undefined where that is none or no constant. */
  readonly standard: unknown;
}

/** @returns every option of a schema, those of nested subjects too, in its order */
export function optionsOf(schema: z.core.$ZodType, path: readonly string[] = []): Option[] {
  const own = facts.get(schema);
  const here: Option[] =
    own === undefined ? [] : [{ ...own, path, name: path.join("."), schema, standard: standardOf(schema) }];
  const shape = objectIn(schema)?.shape ?? {};
  return [...here, ...Object.entries(shape).flatMap(([name, type]) => optionsOf(type, [...path, name]))];
}

/** @returns the options of one subject that a type takes, if it takes any; rules, of which there are several, are values */
export function objectIn(schema: z.core.$ZodType): z.ZodObject | undefined {
  const type = bare(schema);
  if (type instanceof z.ZodObject) return type;
  if (type instanceof z.ZodDiscriminatedUnion || !(type instanceof z.ZodUnion)) return undefined;
  return type.options.map(objectIn).find((found) => found !== undefined);
}

const WRAPPERS = [z.ZodOptional, z.ZodDefault, z.ZodPrefault, z.ZodReadonly] as const;

/** @returns a type without what says whether it may be left out */
export function bare(schema: z.core.$ZodType): z.core.$ZodType {
  const wraps = WRAPPERS.some((wrapper) => schema instanceof wrapper);
  return wraps ? bare((schema as z.ZodOptional).def.innerType) : schema;
}

function standardOf(schema: z.core.$ZodType): unknown {
  return schema instanceof z.ZodDefault ? schema.def.defaultValue : undefined;
}

/** @returns what stands where an option is left out, in words */
export function describeStandard({
  standard,
  otherwise,
  unit,
}: OptionFacts & { readonly standard: unknown }): string {
  if (otherwise !== undefined) return otherwise;
  if (standard === undefined || typeof standard === "object") return "";
  return unit === "bytes" && standard === 2 ** 28 ? "256 MiB" : String(standard);
}
