/** One argument of an operator, as its schema says. */
export interface Argument {
  readonly name: string;
  readonly type: "Tensor" | "Scalar" | "int" | "float" | "bool" | "str" | "ScalarType";
  readonly list: boolean;
  /** `int[2]`: one number stands for all. */
  readonly fixedLength: boolean;
  readonly optional: boolean;
  readonly optionalElements: boolean;
  readonly keywordOnly: boolean;
  /** The default as the schema writes it. */
  readonly fallback?: string;
  /** As it stands in the schema, with SymInt called int. */
  readonly text: string;
}

/** The result of an operator. */
export type Result =
  | "none"
  | "self"
  | "Tensor"
  | "Tensor[]"
  | "bool"
  | "number"
  | { readonly tuple: readonly string[] };

/** A parsed schema. */
export interface Schema {
  readonly operator: string;
  readonly overload: string;
  readonly arguments: readonly Argument[];
  readonly result: Result;
  /** The schema as Troupe calls it: without the arguments it leaves at their defaults. */
  readonly text: string;
}

/** Arguments that mean nothing here, where they may be left out: one layout, one device per thread, Philox for randomness. */
const leftAtDefault = new Set([
  "layout",
  "device",
  "pin_memory",
  "memory_format",
  "generator",
  "non_blocking",
  "cudnn_enable",
]);

/** Reads one line of libtorch's schema language. Throws on what the argument frame cannot carry. */
export function parseSchema(line: string): Schema {
  const match = /^(\w+::\w+)(?:\.(\w+))?\((.*)\) -> (.*)$/.exec(line.replaceAll("SymInt", "int"));
  if (match === null) throw new Error(`not a schema: ${line}`);
  const [, operator = "", overload = "", inside = "", returns = ""] = match;
  const parsed = parseArguments(inside);
  const name = overload === "" ? operator : `${operator}.${overload}`;
  return {
    operator,
    overload,
    arguments: parsed,
    result: parseResult(returns),
    text: `${name}(${joinArguments(parsed)}) -> ${returns}`,
  };
}

function parseArguments(inside: string): Argument[] {
  let keywordOnly = false;
  const result: Argument[] = [];
  for (const text of splitTopLevel(inside)) {
    if (text === "*") keywordOnly = true;
    else if (!canBeLeftOut(text)) result.push(parseArgument(text, keywordOnly));
  }
  return result;
}

function canBeLeftOut(text: string): boolean {
  return leftAtDefault.has(/ (\w+)=.*$/.exec(text)?.[1] ?? "");
}

function parseArgument(text: string, keywordOnly: boolean): Argument {
  const match = /^(\w+)(?:\([^)]*\))?(\?)?(\[(\d*)\])?(\?)? (\w+)(?:=(.*))?$/.exec(text);
  const type = match?.[1];
  if (match === null || !isType(type)) throw new Error(`an argument the frame cannot carry: ${text}`);
  const [, , firstMark, list, length, secondMark, name = "", fallback] = match;
  return {
    name,
    type,
    list: list !== undefined,
    fixedLength: length !== undefined && length !== "",
    optional: list === undefined ? firstMark === "?" : secondMark === "?",
    optionalElements: list !== undefined && firstMark === "?",
    keywordOnly,
    ...(fallback === undefined ? {} : { fallback }),
    text,
  };
}

function isType(name: string | undefined): name is Argument["type"] {
  return (
    name !== undefined && ["Tensor", "Scalar", "int", "float", "bool", "str", "ScalarType"].includes(name)
  );
}

function joinArguments(parsed: readonly Argument[]): string {
  const firstKeyword = parsed.findIndex((argument) => argument.keywordOnly);
  const texts = parsed.map((argument) => argument.text);
  return (firstKeyword < 0 ? texts : texts.toSpliced(firstKeyword, 0, "*")).join(", ");
}

function parseResult(returns: string): Result {
  if (returns === "()") return "none";
  if (/^Tensor\(\w+!\)$/.test(returns)) return "self";
  if (/^Tensor(\(\w+\))?( \w+)?$/.test(returns)) return "Tensor";
  if (/^Tensor(\(\w+\))?\[\]$/.test(returns)) return "Tensor[]";
  if (returns === "bool") return "bool";
  if (returns === "int" || returns === "float" || returns === "Scalar") return "number";
  const parts = splitTopLevel(returns.slice(1, -1));
  return { tuple: parts.map((part, index) => / (\w+)$/.exec(part)?.[1] ?? `result${index}`) };
}

/** Splits at commas that stand outside all brackets and quotes. */
function splitTopLevel(text: string): string[] {
  const parts: string[] = [];
  let depth = 0;
  let start = 0;
  for (let i = 0; i < text.length; ++i) {
    const character = text.charAt(i);
    if ("([".includes(character)) ++depth;
    if (")]".includes(character)) --depth;
    if (character === "," && depth === 0) {
      parts.push(text.slice(start, i).trim());
      start = i + 1;
    }
  }
  return [...parts, text.slice(start).trim()].filter((part) => part !== "");
}
