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
  return parameters(operator)
    .slice(options.from)
    .map((parameter) => emitParameter(parameter, options.defaults))
    .join(", ");
}

/** The names alone, for a call that passes them on. */
export function parameterNames(operator: Operator): string[] {
  return parameters(operator).map((parameter) => parameter.name);
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

/** The whole exported function. */
export function emitFunction(operator: Operator): string {
  const [first] = operator.overloads;
  if (first === undefined) throw new Error(`${operator.name} has no overload`);
  const head = `export function ${camelCase(operator.name)}(${emitParameters(operator, { from: 0, defaults: true })})`;
  const body = emitBranches(operator);
  return `${emitComment(operator)}\n${head}: ${emitResultType(first.schema.result)} {\n${indent(body)}\n}`;
}

interface Parameter {
  readonly name: string;
  readonly types: readonly string[];
  readonly optional: boolean;
  readonly required: boolean;
  readonly literal?: string;
}

function parameters(operator: Operator): Parameter[] {
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
  // What stands before a required parameter cannot be left out.
  const lastRequired = all.findLastIndex((parameter) => parameter.required);
  return all.map((parameter, position) =>
    position < lastRequired ? { ...parameter, required: true } : parameter,
  );
}

function typeOf(argument: Argument | undefined, operator: Operator): string {
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

/** One branch per overload: the one that takes a number there is tried first. */
function emitBranches(operator: Operator): string {
  const { overloads } = operator;
  const names = parameterNames(operator);
  if (overloads.length === 1) return overloads.map((overload) => emitCall(overload, names)).join("");
  const position = differingPosition(operator);
  const takesNumber = (overload: Operator["overloads"][number]) =>
    typeOf(overload.schema.arguments[position], operator) === "number";
  const numeric = overloads.filter(takesNumber).map((overload) => indent(emitCall(overload, names)));
  const other = overloads
    .filter((overload) => !takesNumber(overload))
    .map((overload) => emitCall(overload, names));
  if (numeric.length !== 1 || other.length !== 1)
    throw new Error(`${operator.name}: cannot tell its overloads apart`);
  return `if (typeof ${names[position]} === "number") {\n${numeric[0]}\n}\n${other[0]}`;
}

function differingPosition(operator: Operator): number {
  const positions = parameters(operator).flatMap((parameter, position) =>
    parameter.types.length > 1 ? [position] : [],
  );
  const [only] = positions;
  if (only === undefined || positions.length > 1)
    throw new Error(`${operator.name}: overloads must differ in one argument`);
  return only;
}

function emitCall(overload: Operator["overloads"][number], names: readonly string[]): string {
  const { schema, index } = overload;
  return [...emitWrites(schema.arguments, names), ...emitReturn(schema, index, names)].join("\n");
}

function emitWrites(list: readonly Argument[], names: readonly string[]): string[] {
  const lines: string[] = [];
  let base = ""; // "" while offsets are constants, "next + " behind the first list
  let offset = 0;
  const slot = (ahead = 0) => (base !== "" && offset + ahead === 0 ? "next" : `${base}${offset + ahead}`);
  list.forEach((argument, position) => {
    const name = names[position] ?? "";
    if (argument.list) {
      const isLast = position === list.length - 1;
      lines.push(
        `${isLast ? "" : base === "" ? "let next = " : "next = "}${listWriter(argument)}(${slot()}, ${name});`,
      );
      base = "next + ";
      offset = 0;
    } else if (argument.optional) {
      lines.push(`frame[${slot()}] = ${name} === undefined ? 0 : 1;`);
      lines.push(`frame[${slot(1)}] = ${name} === undefined ? 0 : ${asNumber(argument, name)};`);
      offset += 2;
    } else {
      lines.push(`frame[${slot()}] = ${asNumber(argument, name)};`);
      offset += 1;
    }
  });
  return reassignedOnce(lines);
}

/** `let` where the cursor moves again, `const` where it does not. */
function reassignedOnce(lines: readonly string[]): string[] {
  const moves = lines.filter((line) => /^(let )?next = /.test(line)).length;
  return lines.map((line) => (moves === 1 ? line.replace(/^let next/, "const next") : line));
}

function listWriter(argument: Argument): string {
  if (argument.type === "Tensor") return argument.optionalElements ? "putOptionalTensors" : "putTensors";
  return argument.optional ? "putOptionalNumbers" : "putNumbers";
}

function asNumber(argument: Argument, name: string): string {
  switch (argument.type) {
    case "Tensor":
      return `${name}.handle`;
    case "bool":
      return `${name} ? 1 : 0`;
    case "str":
      return `intern(${name})`;
    case "ScalarType":
      return `dtypeCode(${name})`;
    default:
      return name;
  }
}

function emitReturn(schema: Schema, index: number, names: readonly string[]): string[] {
  const { result } = schema;
  if (typeof result === "object") {
    return [
      `call(${index});`,
      `return [${result.tuple.map((_, position) => `adoptAt(${position})`).join(", ")}];`,
    ];
  }
  switch (result) {
    case "none":
      return [`call(${index});`];
    case "self":
      return [`call(${index});`, `return ${names[0]};`];
    case "Tensor":
      return [`return adopt(call(${index}));`];
    case "Tensor[]":
      return [`return adoptList(call(${index}));`];
    case "bool":
      return [`return call(${index}) !== 0;`];
    case "number":
      return [`return call(${index});`];
  }
}

function indent(text: string): string {
  return text.replace(/^(?=.)/gm, "  ");
}
