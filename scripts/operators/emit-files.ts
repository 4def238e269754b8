import { readFileSync } from "node:fs";
import { emitFunction } from "./emit-function.ts";
import {
  camelCase,
  emitComment,
  emitParameters,
  emitResultType,
  type Operator,
  parameterNames,
} from "./operator.ts";
import { type Entry, readList } from "./read-list.ts";
import { parseSchema, type Schema } from "./schema.ts";

/** The generated files of src/compute/tensor. */
export interface GeneratedFiles {
  /** Text by file name. */
  readonly texts: ReadonlyMap<string, string>;
  readonly numAten: number;
  readonly numTroupe: number;
}

/**
 * Makes the files from operators.txt and libtorch's schemas.
 * @param lines - every schema registered under aten:: and troupe::, as the dispatcher prints them
 * @param torch - the version that printed them
 */
export function generateFiles(lines: readonly string[], torch: string): GeneratedFiles {
  const list = readList(readFileSync(new URL("operators.txt", import.meta.url), "utf8"));
  const installed = parseListed(lines, list);
  const table: string[] = [];
  const aten = list
    .filter((entry) => entry.namespace === "aten")
    .map((entry) => toOperator(entry, installed, table));
  const own = list
    .filter((entry) => entry.namespace === "troupe")
    .map((entry) => toOperator(entry, installed, table));
  const banner = `// Written by scripts/generate-ops.ts from scripts/operators/operators.txt and the schemas of libtorch ${torch}.\n`;
  const texts = new Map([
    ["schemas.generated.ts", banner + emitTable(table)],
    ["ops.generated.ts", banner + emitModule(aten)],
    ["troupe.generated.ts", banner + emitModule(own)],
    ["methods.generated.ts", banner + emitMethods(aten.filter(isMethod), own.filter(isMethod))],
  ]);
  return { texts, numAten: aten.length, numTroupe: own.length };
}

function parseListed(lines: readonly string[], list: readonly Entry[]): Map<string, Schema> {
  const listed = new Set(list.flatMap((entry) => entry.overloads));
  const nameOf = (line: string) => line.slice(0, line.indexOf("("));
  return new Map(
    lines.filter((line) => listed.has(nameOf(line))).map((line) => [nameOf(line), parseSchema(line)]),
  );
}

function toOperator(entry: Entry, installed: ReadonlyMap<string, Schema>, table: string[]): Operator {
  const overloads = entry.overloads.map((name) => {
    const schema = installed.get(name);
    if (schema === undefined) throw new Error(`${name}: this libtorch has no such operator`);
    return { schema, index: table.push(schema.text) - 1 };
  });
  return { name: entry.name, description: entry.description, overloads };
}

function isMethod(operator: Operator): boolean {
  const first = operator.overloads[0]?.schema.arguments[0];
  return first?.name === "self" && first.type === "Tensor" && !first.list;
}

function emitTable(table: readonly string[]): string {
  const lines = table.map((text) => `  ${JSON.stringify(text)},`);
  return `
/** The schema of every operator that Troupe calls; its position is its number in {@link call}. */
export const schemas: readonly string[] = [
${lines.join("\n")}
];
`;
}

function emitModule(operators: readonly Operator[]): string {
  const body = operators.map(emitFunction).join("\n\n");
  const used = (names: string[]) => names.filter((name) => new RegExp(`\\b${name}\\b`).test(body));
  const dtypes = [...used(["DType"]).map((name) => `type ${name}`), ...used(["dtypeCode"])];
  const frame = used([
    "call",
    "frame",
    "handleOf",
    "intern",
    "putNumbers",
    "putOptionalNumbers",
    "putOptionalTensors",
    "putTensors",
  ]);
  const tensor = [...used(["adopt", "adoptAt", "adoptList"]), "type Tensor"];
  return `
${dtypes.length === 0 ? "" : `import { ${dtypes.join(", ")} } from "./dtype.ts";\n`}import { ${frame.join(", ")} } from "./frame.ts";
import { ${tensor.join(", ")} } from "./tensor.ts";

${body}
`;
}

function emitMethods(fromAten: readonly Operator[], fromTroupe: readonly Operator[]): string {
  const declared = [...fromAten, ...fromTroupe].map(declareMethod).join("\n");
  const defined = [
    ...fromAten.map((it) => defineMethod(it, "ops")),
    ...fromTroupe.map((it) => defineMethod(it, "troupe")),
  ];
  return `
import type { DType } from "./dtype.ts";
import * as ops from "./ops.generated.ts";
import { Tensor } from "./tensor.ts";
import * as troupe from "./troupe.generated.ts";

/** The operators whose first argument is \`self\`, as methods of {@link Tensor}. */
export interface OperatorMethods {
${declared.replace(/^(?=.)/gm, "  ")}
}

declare module "./tensor.ts" {
  interface Tensor extends OperatorMethods {}
}

const methods: OperatorMethods & ThisType<Tensor> = {
${defined.join("\n")}
};

Object.assign(Tensor.prototype, methods);
`;
}

function declareMethod(operator: Operator): string {
  const result = operator.overloads[0]?.schema.result ?? "none";
  const parameters = emitParameters(operator, { from: 1, defaults: false });
  return `${emitComment(operator)}\n${camelCase(operator.name)}(${parameters}): ${emitResultType(result)};`;
}

function defineMethod(operator: Operator, module: string): string {
  const name = camelCase(operator.name);
  const [, ...rest] = parameterNames(operator);
  return `  ${name}(${rest.join(", ")}) {\n    return ${module}.${name}(${["this", ...rest].join(", ")});\n  },`;
}
