import { isDeepStrictEqual } from "node:util";
import {
  type ConfigField,
  checkField,
  configOfFile,
  type Family,
  familyOf,
  type Json,
  MAX_LABELS,
  type ModelCenterForm,
  type ModelCenterModel,
  type Spelling,
} from "../../models/index.ts";
import { architectureOf, familiesWith, formOf } from "../form-of.ts";

const where = "model-center";

/** Whether a config.json is ModelCenter's. */
export function isModelCenterConfig(config: Readonly<Record<string, unknown>>): boolean {
  return "dim_model" in config;
}

/**
 * Converts ModelCenter's config.json to Hugging Face's.
 * @param names - of the model's tensors, which identify its family
 * @throws {TroupeError} `MODEL_CONFIG` for settings that Hugging Face's model lacks
 */
export async function fromModelCenterConfig(names: readonly string[], config: Json): Promise<Json> {
  const { type, form } = await familyByNames(names, config);
  for (const [field, expected] of Object.entries(form.fixed)) {
    const value = config[field] ?? expected;
    const holds = value === expected || (!value && !expected);
    checkField(where, field, holds, `${JSON.stringify(expected)}, as in Hugging Face's ${type}`, value);
  }
  const fields = Object.entries(form.fields).flatMap(([theirs, [standard, ...ours]]) => {
    const value = respelt(theirs, config[theirs] ?? standard, form.spellings?.[theirs]);
    return ours.map((name) => [name, value] as const);
  });
  if (!("dim_head" in form.fields)) {
    const { dim_model = 0, num_heads = 1, dim_head = Number(dim_model) / Number(num_heads) } = config;
    const isWhole = Number(dim_head) * Number(num_heads) === Number(dim_model);
    checkField(where, "dim_head", isWhole, "dim_model / num_heads", dim_head);
  }
  const numLabels = typeof config.cls_head === "number" && config.cls_head > 0 ? config.cls_head : undefined;
  const mayLabel = numLabels === undefined || form.hasLabels === true;
  checkField(where, "cls_head", mayLabel, "none in a decoder", config.cls_head);
  const [name, head] = form.architecture;
  return {
    ...Object.fromEntries(fields),
    ...form.fixedHere,
    model_type: type,
    architectures: [name + (numLabels === undefined ? head : "ForTokenClassification")],
    ...(numLabels !== undefined && labels(numLabels)),
  };
}

/**
 * Converts Hugging Face's config.json to ModelCenter's, and maps the names.
 * @throws {TroupeError} `MODEL_CONFIG` for another family, or for settings that ModelCenter's model lacks
 */
export async function toModelCenter(
  given: Json,
): Promise<{ readonly config: Json; readonly model: ModelCenterModel }> {
  const form = await formOf("modelCenter", where, given);
  const own = (familyOf(given) as Family).config(configOfFile(given));
  const architecture = architectureOf(given);
  const [, head = ""] = /For(\w+)$/.exec(architecture) ?? [];
  const config = toConfig(form, (form.complete?.(own) ?? own) as Json, architecture);
  return { config, model: form.model(own, head) };
}

/** @param config - with all of Hugging Face's fields, including defaults */
function toConfig(form: ModelCenterForm, config: Json, architecture: string): Json {
  for (const [field, expected] of Object.entries(form.fixedHere)) {
    const holds = isDeepStrictEqual(config[field], expected);
    checkField(where, field, holds, `${JSON.stringify(expected)}, as in ModelCenter`, config[field]);
  }
  for (const [field, other] of Object.entries(form.equalHere ?? {}))
    checkField(
      where,
      field,
      config[field] === config[other],
      `${config[other]}, as in ModelCenter`,
      config[field],
    );
  const fields: Record<string, ConfigField> = {};
  for (const [theirs, [, ...names]] of Object.entries(form.fields)) {
    const back = form.spellings?.[theirs]?.map(([their, ours]): Spelling => [ours, their]);
    for (const name of names) fields[theirs] ??= respelt(name, config[name] as ConfigField, back);
  }
  if (!("dim_head" in fields)) fields.dim_head = Number(fields.dim_model) / Number(fields.num_heads);
  const numLabels = Object.keys((config.id2label ?? {}) as object).length;
  const initial = fields.att_init_std;
  return {
    ...fields,
    ...(initial !== undefined && { emb_init_std: initial, ffn_init_std: initial, proj_init_std: initial }),
    ...form.fixed,
    cls_head: architecture.endsWith("ForTokenClassification") ? numLabels : null,
  };
}

/** The family of a ModelCenter model, by its tensors' names, and by its config.json if two families have the same names. */
async function familyByNames(
  names: readonly string[],
  config: Json,
): Promise<{ readonly type: string; readonly form: ModelCenterForm }> {
  const has = (part: string) => names.some((name) => name.includes(part));
  const types = familiesWith("modelCenter").map(({ modelType }) => modelType);
  const forms = await Promise.all(
    types.map(async (type) => ({ type, form: await formOf("modelCenter", where, { model_type: type }) })),
  );
  const found = forms.find(({ form }) => form.matches(has, config));
  checkField(where, "config.json", found !== undefined, `of one of ${types.join(", ")}`, "other tensors");
  return found as NonNullable<typeof found>;
}

/** Translates a value to the other side's spelling. */
function respelt(field: string, value: ConfigField, spellings: readonly Spelling[] | undefined): ConfigField {
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
