import {
  camelCase,
  emitComment,
  emitParameters,
  emitResultType,
  type Operator,
  parameterNames,
  parametersOf,
  typeOf,
} from "./operator.ts";
import type { Argument, Schema } from "./schema.ts";

/** The text of the exported function. */
export function emitFunction(operator: Operator): string {
  const [first] = operator.overloads;
  if (first === undefined) throw new Error(`${operator.name} has no overload`);
  const head = `export function ${camelCase(operator.name)}(${emitParameters(operator, { from: 0, defaults: true })})`;
  const body = emitBranches(operator);
  return `${emitComment(operator)}\n${head}: ${emitResultType(first.schema.result)} {\n${indent(body)}\n}`;
}

/** One branch per overload: the one that takes a number there is tried first. */
function emitBranches(operator: Operator): string {
  const { overloads } = operator;
  const names = parameterNames(operator);
  if (overloads.length === 1) return overloads.map((overload) => emitCall(overload, operator)).join("");
  const position = differingPosition(operator);
  const takesNumber = (overload: Operator["overloads"][number]) =>
    typeOf(overload.schema.arguments[position], operator) === "number";
  const numeric = overloads.filter(takesNumber).map((overload) => indent(emitCall(overload, operator)));
  const other = overloads
    .filter((overload) => !takesNumber(overload))
    .map((overload) => emitCall(overload, operator));
  if (numeric.length !== 1 || other.length !== 1)
    throw new Error(`${operator.name}: cannot tell its overloads apart`);
  return `if (typeof ${names[position]} === "number") {\n${numeric[0]}\n}\n${other[0]}`;
}

function differingPosition(operator: Operator): number {
  const positions = parametersOf(operator).flatMap((parameter, position) =>
    parameter.types.length > 1 ? [position] : [],
  );
  const [only] = positions;
  if (only === undefined || positions.length > 1)
    throw new Error(`${operator.name}: overloads must differ in one argument`);
  return only;
}

function emitCall(overload: Operator["overloads"][number], operator: Operator): string {
  const { schema, index } = overload;
  const names = parameterNames(operator);
  return [
    ...emitWrites(schema.arguments, names, camelCase(operator.name)),
    ...emitReturn(schema, index, names),
  ].join("\n");
}

/** @param op - the operator as it is called, for errors */
function emitWrites(list: readonly Argument[], names: readonly string[], op: string): string[] {
  const lines: string[] = [];
  let base = ""; // "" while offsets are constants, "next + " behind the first list
  let offset = 0;
  const slot = (ahead = 0) => (base !== "" && offset + ahead === 0 ? "next" : `${base}${offset + ahead}`);
  list.forEach((argument, position) => {
    const name = names[position] ?? "";
    if (argument.list) {
      const isLast = position === list.length - 1;
      lines.push(
        `${isLast ? "" : base === "" ? "let next = " : "next = "}${listWriter(argument)}(${slot()}, ${name}, "${op}", "${name}");`,
      );
      base = "next + ";
      offset = 0;
    } else if (argument.optional) {
      lines.push(`frame[${slot()}] = ${name} === undefined ? 0 : 1;`);
      lines.push(`frame[${slot(1)}] = ${name} === undefined ? 0 : ${asNumber(argument, name, op)};`);
      offset += 2;
    } else {
      lines.push(`frame[${slot()}] = ${asNumber(argument, name, op)};`);
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

function asNumber(argument: Argument, name: string, op: string): string {
  switch (argument.type) {
    case "Tensor":
      return `handleOf(${name}, "${op}", "${name}")`;
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
