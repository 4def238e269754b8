import * as z from "zod";
import {
  bare,
  describeStandard,
  interfaceOf,
  type OptionFacts,
  objectIn,
  optionsOf,
} from "../src/job/options/option.ts";
import { runtimeSchema } from "../src/job/options/schema.ts";

/** @returns the text of `options.generated.ts`: the interfaces that editors show, with the meaning of each option */
export function optionTypes(): string {
  const interfaces = new Map<string, string>();
  addInterface(interfaces, runtimeSchema);
  return `// Made from schema.ts by \`npm run docs:write\`. A test compares the two.
import type { EventSink } from "../events/index.ts";
import type { LossScaleRule } from "../../compute/optim/index.ts";

/** Dtype of the ranks' computation. */
export type Precision = ${typeOf(runtimeSchema.shape.precision)};

/** Where each rank runs. */
export type RankPlacement = ${typeOf(runtimeSchema.shape.placement)};

/** Transport of tensors between ranks. */
export type CarrierChoice = ${typeOf(runtimeSchema.shape.carrier)};

/** How master weights are rounded to low precision. */
export type Rounding = ${typeOf(runtimeSchema.shape.rounding)};

${[...interfaces.values()].join("\n\n")}
`;
}

function addInterface(interfaces: Map<string, string>, type: z.ZodObject): void {
  const { interfaceName, meaning } = interfaceOf(type) ?? { interfaceName: "", meaning: "" };
  if (interfaces.has(interfaceName)) return;
  interfaces.set(interfaceName, ""); // its place, before those that it names
  const members = Object.entries(type.shape).map(([name, member]) => {
    const [option] = optionsOf(member);
    const own = option?.schema === member ? option : undefined;
    const inner = objectIn(member);
    if (inner !== undefined) addInterface(interfaces, inner);
    const about = own === undefined ? subjectOf(member) : meaningOf(own);
    const [mark, none] = z.safeParse(member, undefined).success ? ["?", " | undefined"] : ["", ""];
    return `${docComment(about)}\n  readonly ${name}${mark}: ${own?.type ?? typeOf(member)}${none};`;
  });
  interfaces.set(
    interfaceName,
    `/** ${meaning} */\nexport interface ${interfaceName} {\n${members.join("\n")}\n}`,
  );
}

const WIDTH = 120;

/** On one line where it fits. */
function docComment(about: string): string {
  const line = `  /** ${about} */`;
  if (line.length <= WIDTH) return line;
  const lines = [""];
  for (const word of about.split(" ")) {
    const last = lines.at(-1) ?? "";
    if (`   * ${last} ${word}`.length > WIDTH) lines.push(word);
    else lines[lines.length - 1] = last === "" ? word : `${last} ${word}`;
  }
  return ["  /**", ...lines.map((each) => `   * ${each}`), "   */"].join("\n");
}

function subjectOf(member: z.core.$ZodType): string {
  const [option] = optionsOf(member);
  const inner = objectIn(member);
  const about = inner && Object.keys(inner.shape).length > 1 ? interfaceOf(inner)?.meaning : undefined;
  return about ?? sentence(option?.meaning ?? "");
}

function meaningOf(option: OptionFacts & { readonly standard: unknown }): string {
  const standard = describeStandard(option);
  return `${sentence(option.meaning)}${standard === "" ? "" : ` Default: ${standard}.`}`;
}

const sentence = (meaning: string) => `${meaning.charAt(0).toUpperCase()}${meaning.slice(1)}.`;

function typeOf(schema: z.core.$ZodType): string {
  const type = bare(schema);
  if (type instanceof z.ZodNumber) return "number";
  if (type instanceof z.ZodString) return "string";
  if (type instanceof z.ZodBoolean) return "boolean";
  if (type instanceof z.ZodEnum) return type.options.map((word) => JSON.stringify(word)).join(" | ");
  if (type instanceof z.ZodLiteral) return literalsOf(type.values);
  if (type instanceof z.ZodArray) return `readonly ${typeOf(type.element)}[]`;
  if (type instanceof z.ZodObject) return interfaceOf(type)?.interfaceName ?? "object";
  if (type instanceof z.ZodUnion) return [...new Set(type.options.map(typeOf))].join(" | ");
  throw new Error(`no TypeScript is known for ${type._zod.def.type}`);
}

/** Infinity is a number of its own to the schema alone. */
function literalsOf(values: ReadonlySet<unknown>): string {
  return [...values]
    .map((value) => (value === Number.POSITIVE_INFINITY ? "number" : JSON.stringify(value)))
    .join(" | ");
}
