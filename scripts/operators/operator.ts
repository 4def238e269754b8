import type { Argument, Result, Schema } from "./schema.ts";

/** A public operator with the schemas of its overloads and their numbers in the table. */
export interface Operator {
  readonly name: string;
  readonly description: string;
  readonly overloads: readonly { readonly schema: Schema; readonly index: number }[];
}

/** scaled_dot_product_attention → scaledDotProductAttention; a trailing underscore stays. */
export function camelCase(name: string): string {
  return name.replace(/(?<=[^_])_([a-zA-Z0-9])/g, (_, letter: string) => letter.toUpperCase());
}

/** The doc comment of an operator: what it does, then its schemas. */
export function emitComment(operator: Operator): string {
  const schemas = operator.overloads.map(({ schema }) => ` * \`${schema.text}\``);
  return ["/**", ` * ${operator.description}`, " *", ...schemas, " */"].join("\n");
}

/** The parameter list with types and defaults; without defaults where only the type is wanted. */
export function emitParameters(operator: Operator, options: { from: number; defaults: boolean }): string {
  return parametersOf(operator)
    .slice(options.from)
    .map((parameter) => emitParameter(parameter, options.defaults))
    .join(", ");
}

/** The names alone, for a call that passes them on. */
export function parameterNames(operator: Operator): string[] {
  return parametersOf(operator).map((parameter) => parameter.name);
}

/** The TypeScript type of what the operator returns. */
export function emitResultType(result: Result): string {
  if (typeof result === "object")
    return `[${result.tuple.map((name) => `${camelCase(name)}: Tensor`).join(", ")}]`;
  return {
    none: "void",
    self: "Tensor",
    Tensor: "Tensor",
    "Tensor[]": "Tensor[]",
    bool: "boolean",
    number: "number",
  }[result];
}

/** One parameter of the TypeScript function. */
export interface Parameter {
  readonly name: string;
  readonly types: readonly string[];
  readonly optional: boolean;
  readonly required: boolean;
  readonly literal?: string;
}

/** The parameters of all overloads as one list; where they differ, a parameter has several types. */
export function parametersOf(operator: Operator): Parameter[] {
  const [first, ...others] = operator.overloads.map(({ schema }) => schema.arguments);
  const all = (first ?? []).map((argument, position): Parameter => {
    const types = new Set(
      [argument, ...others.map((overload) => overload[position])].map((it) => typeOf(it, operator)),
    );
    const literal = literalOf(argument);
    return {
      name: camelCase(argument.name),
      types: [...types],
      optional: argument.optional,
      required: literal === undefined && !argument.optional,
      ...(literal === undefined ? {} : { literal }),
    };
  });
  // Parameters before a required one are required too.
  const lastRequired = all.findLastIndex((parameter) => parameter.required);
  return all.map((parameter, position) =>
    position < lastRequired ? { ...parameter, required: true } : parameter,
  );
}

/** The TypeScript type of an argument. */
export function typeOf(argument: Argument | undefined, operator: Operator): string {
  if (argument === undefined) throw new Error(`${operator.name}: overloads of different length`);
  const single = {
    Tensor: "Tensor",
    Scalar: "number",
    int: "number",
    float: "number",
    bool: "boolean",
    str: "string",
  };
  const name = argument.type === "ScalarType" ? "DType" : single[argument.type];
  if (!argument.list) return name;
  const list = argument.optionalElements ? `readonly (${name} | undefined)[]` : `readonly ${name}[]`;
  return argument.fixedLength ? `${name} | ${list}` : list;
}

function literalOf(argument: Argument): string | undefined {
  const { fallback } = argument;
  if (fallback === undefined || fallback === "None") return undefined;
  if (fallback === "True" || fallback === "False") return fallback.toLowerCase();
  if (argument.type === "ScalarType") return dtypeLiteral(fallback);
  if (fallback.startsWith('"') || fallback.startsWith("[")) return fallback;
  return String(Number(fallback));
}

/** Schemas write default dtypes as libtorch's numbers. */
function dtypeLiteral(code: string): string {
  const names: Readonly<Record<string, string>> = { "4": '"int64"', "6": '"float32"' };
  const name = names[code];
  if (name === undefined) throw new Error(`a default dtype without a name here: ${code}`);
  return name;
}

function emitParameter(parameter: Parameter, defaults: boolean): string {
  const type = parameter.types.join(" | ");
  if (parameter.required) return `${parameter.name}: ${type}${parameter.optional ? " | undefined" : ""}`;
  if (parameter.literal === undefined || !defaults) return `${parameter.name}?: ${type}`;
  return ["number", "boolean", "string"].includes(type)
    ? `${parameter.name} = ${parameter.literal}`
    : `${parameter.name}: ${type} = ${parameter.literal}`;
}
