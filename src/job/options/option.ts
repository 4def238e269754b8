import * as z from "zod";

/** Groups of options, in the order of help and docs, with their headings. */
// biome-ignore format: a list
export const groups = {
  layout: "Layout", training: "Training", precision: "Precision", execution: "Memory and speed",
  offload: "Offload", checkpoint: "Checkpoints", supervision: "Supervision", anomalies: "Anomalies",
  telemetry: "Telemetry", dashboard: "Dashboard", output: "Output", slowdown: "Experiments",
} as const;

/** The name of one of {@link groups}. */
export type HeadingName = keyof typeof groups;

/** Facts about an option that its type does not hold. */
export interface OptionFacts {
  /** One sentence without its full stop. */
  readonly meaning: string;
  /** The flag on a command line, `--ranks <n>`. Empty: none. */
  readonly flag: string;
  /** Other flags that set the option, and the meaning of each. */
  readonly also?: Readonly<Record<string, string>>;
  readonly unit?: "bytes" | "ms" | "s";
  /** The default in words, if it is not a constant of the schema. */
  readonly otherwise?: string;
  /** The TypeScript type, if it is not derived from the schema. */
  readonly type?: string;
}

const facts = z.registry<OptionFacts>();
const groupOf = new WeakMap<z.core.$ZodType, HeadingName>();
const names = z.registry<{ readonly interfaceName: string; readonly meaning: string }>();

/** Declares an option: its type, flag, meaning and other facts. */
export function option<Type extends z.ZodType>(
  type: Type,
  flag: string,
  meaning: string,
  more: Pick<OptionFacts, "also" | "unit" | "otherwise" | "type"> = {},
): Type {
  facts.add(type, { meaning, flag, ...more });
  return type;
}

/** Declares that options, and those inside them, belong to a group. @returns the options */
export function grouped<Shape extends z.core.$ZodShape>(group: HeadingName, shape: Shape): Shape {
  for (const type of Object.values(shape)) groupOf.set(type, group);
  return shape;
}

/** Names the TypeScript interface of one subject's options. */
export function named<Type extends z.ZodType>(interfaceName: string, meaning: string, type: Type): Type {
  names.add(type, { interfaceName, meaning });
  return type;
}

/** @returns the facts given to {@link named} */
export function interfaceOf(type: z.core.$ZodType) {
  return names.get(type);
}

/** One option of a schema, at any depth. */
export interface Option extends OptionFacts {
  readonly group: HeadingName;
  /** From the outermost subject in: `["checkpoint", "everySteps"]`. */
  readonly path: readonly string[];
  /** The path in sentences: `checkpoint.everySteps`. */
  readonly name: string;
  readonly schema: z.core.$ZodType;
  /** The default; undefined if there is none or it is not a constant. */
  readonly standard: unknown;
}

/** @returns every option of a schema, nested ones included, in order. @param around - group of the options around them */
export function optionsOf(
  schema: z.core.$ZodType,
  path: readonly string[] = [],
  around: HeadingName = "output",
): Option[] {
  const own = facts.get(schema);
  const group = groupOf.get(schema) ?? around;
  const standard = schema instanceof z.ZodDefault ? schema.def.defaultValue : undefined;
  const about = { group, path, name: path.join("."), schema, standard };
  const inside = Object.entries(objectIn(schema)?.shape ?? {});
  return [
    ...(own === undefined ? [] : [{ ...own, ...about }]),
    ...inside.flatMap(([name, type]) => optionsOf(type, [...path, name], group)),
  ];
}

/** @returns the options of one subject that a type takes, if any; a union of rules is a value */
export function objectIn(schema: z.core.$ZodType): z.ZodObject | undefined {
  const type = bare(schema);
  if (type instanceof z.ZodObject) return type;
  if (type instanceof z.ZodDiscriminatedUnion || !(type instanceof z.ZodUnion)) return undefined;
  return type.options.map(objectIn).find((found) => found !== undefined);
}

const WRAPPERS = [z.ZodOptional, z.ZodDefault, z.ZodPrefault, z.ZodReadonly] as const;

/** @returns a type without its optional and default wrappers */
export function bare(schema: z.core.$ZodType): z.core.$ZodType {
  const wraps = WRAPPERS.some((wrapper) => schema instanceof wrapper);
  return wraps ? bare((schema as z.ZodOptional).def.innerType) : schema;
}

/** @returns an option's default in words */
export function describeStandard({
  standard,
  otherwise,
  unit,
}: OptionFacts & { readonly standard: unknown }): string {
  if (otherwise !== undefined) return otherwise;
  if (standard === undefined || typeof standard === "object") return "";
  return unit === "bytes" && standard === 2 ** 28 ? "256 MiB" : String(standard);
}
