// Writes src/tensor/*.generated.ts from scripts/operators/operators.txt and the schemas of the libtorch that the built
// addon is linked with. For developers of Troupe, after an operator was added to the list or to native/kernels:
//
//   node scripts/generate-ops.ts
import { readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import {
  camelCase,
  emitComment,
  emitFunction,
  emitParameters,
  emitResultType,
  type Operator,
  parameterNames,
} from "./operators/emit-function.ts";
import { type Entry, readList } from "./operators/read-list.ts";
import { parseSchema, type Schema } from "./operators/schema.ts";

const root = new URL("..", import.meta.url);
const banner =
  "// Written by scripts/generate-ops.ts: change that, or scripts/operators/operators.txt, and run it again.\n";

const list = readList(readFileSync(new URL("scripts/operators/operators.txt", root), "utf8"));
const installed = readInstalledSchemas();
const table: string[] = [];
const aten = list.filter((entry) => entry.namespace === "aten").map(number);
const own = list.filter((entry) => entry.namespace === "troupe").map(number);

write("schemas.generated.ts", emitTable());
write("ops.generated.ts", emitModule(aten));
write("troupe.generated.ts", emitModule(own));
write("methods.generated.ts", emitMethods(aten.filter(isMethod), own.filter(isMethod)));
console.log(`${aten.length} operators of libtorch, ${own.length} of Troupe, ${table.length} schemas`);

function readInstalledSchemas(): Map<string, Schema> {
  const path = process.env.TROUPE_ADDON ?? new URL("build/troupe.node", root).pathname;
  const addon: { schemas(namespace: string): string[] } = createRequire(import.meta.url)(path);
  const listed = new Set(list.flatMap((entry) => entry.overloads));
  const lines = [...addon.schemas("aten"), ...addon.schemas("troupe")];
  const nameOf = (line: string) => line.slice(0, line.indexOf("("));
  return new Map(
    lines.filter((line) => listed.has(nameOf(line))).map((line) => [nameOf(line), parseSchema(line)]),
  );
}

function number(entry: Entry): Operator {
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

function emitTable(): string {
  const lines = table.map((text) => `  ${JSON.stringify(text)},`);
  return `${banner}
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
    "intern",
    "putNumbers",
    "putOptionalNumbers",
    "putOptionalTensors",
    "putTensors",
  ]);
  const tensor = [...used(["adopt", "adoptAt", "adoptList"]), "type Tensor"];
  return `${banner}
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
  return `${banner}
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

function write(name: string, text: string): void {
  writeFileSync(new URL(`src/tensor/${name}`, root), text);
}
