import { isDeepStrictEqual } from "node:util";
import { checkField, MAX_LABELS } from "../../models/config-fields.ts";
import type { ConfigField } from "../../models/weights.ts";
import { families, type Json, type ModelCenterType, type Spelling } from "./families.ts";

const where = "model-center";

/** Whether fields are those of a ModelCenter config.json. */
export function isModelCenterConfig(config: Readonly<Record<string, unknown>>): boolean {
  return "dim_model" in config;
}

/**
 * Hugging Face's config.json of the model that ModelCenter's describes.
 * @throws {TroupeError} `MODEL_CONFIG` for what Hugging Face's model does not have
 */
export function fromModelCenterConfig(type: ModelCenterType, config: Json): Json {
  const family = families[type];
  for (const [field, expected] of Object.entries(family.fixed)) {
    const value = config[field] ?? expected;
    const holds = value === expected || (!value && !expected);
    checkField(where, field, holds, `${JSON.stringify(expected)}, as in Hugging Face's ${type}`, value);
  }
  const fields = Object.entries(family.fields).flatMap(([theirs, [standard, ...names]]) => {
    const value = respelt(theirs, config[theirs] ?? standard, family.spellings?.[theirs]);
    return names.map((name) => [name, value] as const);
  });
  if (!("dim_head" in family.fields)) {
    const { dim_model = 0, num_heads = 1, dim_head = Number(dim_model) / Number(num_heads) } = config;
    const isWhole = Number(dim_head) * Number(num_heads) === Number(dim_model);
    checkField(where, "dim_head", isWhole, "dim_model / num_heads", dim_head);
  }
  const numLabels = typeof config.cls_head === "number" && config.cls_head > 0 ? config.cls_head : undefined;
  const isEncoder = type === "bert" || type === "roberta";
  checkField(
    where,
    "cls_head",
    numLabels === undefined || isEncoder,
    "none beside a decoder",
    config.cls_head,
  );
  const [name, head] = family.architecture;
  return {
    ...Object.fromEntries(fields),
    ...family.fixedHere,
    model_type: type,
    architectures: [name + (numLabels === undefined ? head : "ForTokenClassification")],
    ...(numLabels !== undefined && labels(numLabels)),
  };
}

/**
 * ModelCenter's config.json of the model that Hugging Face's describes.
 * @throws {TroupeError} `MODEL_CONFIG` for what ModelCenter's model does not have
 */
export function toModelCenterConfig(type: ModelCenterType, given: Json): Json {
  const family = families[type];
  const config = family.complete(given);
  for (const [field, expected] of Object.entries(family.fixedHere)) {
    const holds = isDeepStrictEqual(config[field], expected);
    checkField(where, field, holds, `${JSON.stringify(expected)}, as in ModelCenter`, config[field]);
  }
  if (type === "opt") {
    const { word_embed_proj_dim: wordWidth, hidden_size: width } = config;
    checkField(where, "word_embed_proj_dim", wordWidth === width, `${width}, as in ModelCenter`, wordWidth);
  }
  const fields: Record<string, ConfigField> = {};
  for (const [theirs, [, ...names]] of Object.entries(family.fields)) {
    const back = family.spellings?.[theirs]?.map(([their, ours]): Spelling => [ours, their]);
    for (const name of names) fields[theirs] ??= respelt(name, config[name] as ConfigField, back);
  }
  if (!("dim_head" in fields)) fields.dim_head = Number(fields.dim_model) / Number(fields.num_heads);
  const isTagger = architectureOf(given).endsWith("ForTokenClassification");
  const numLabels = Object.keys((config.id2label ?? {}) as object).length;
  const initial = fields.att_init_std;
  return {
    ...fields,
    ...(initial !== undefined && { emb_init_std: initial, ffn_init_std: initial, proj_init_std: initial }),
    ...family.fixed,
    cls_head: isTagger ? numLabels : null,
  };
}

/** The first of a config.json's architectures; empty where it names none. */
export function architectureOf({ architectures: names }: Readonly<Record<string, unknown>>): string {
  return String((names as readonly string[] | undefined)?.[0] ?? "");
}

/** A value by the other side's word for it. */
function respelt(field: string, value: ConfigField, spellings?: readonly Spelling[]): ConfigField {
  if (spellings === undefined) return value;
  const known = spellings.find(([from]) => from === value);
  const words = spellings.map(([from]) => from).join(", ");
  checkField(where, field, known !== undefined || typeof value === "number", `one of ${words}`, value);
  return known === undefined ? value : known[1];
}

function labels(count: number): Json {
  checkField(
    where,
    "cls_head",
    Number.isSafeInteger(count) && count <= MAX_LABELS,
    `at most ${MAX_LABELS}`,
    count,
  );
  const names = Array.from({ length: count }, (_, id) => `LABEL_${id}`);
  return {
    id2label: Object.fromEntries(names.map((name, id) => [String(id), name])),
    label2id: Object.fromEntries(names.map((name, id) => [name, id])),
  };
}
