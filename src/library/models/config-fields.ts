import { type ActivationName, activations } from "../../compute/nn/index.ts";
import { TroupeError, whatWasMeant } from "../../errors/index.ts";
import type { ConfigField } from "./weights.ts";

/** A field of a model's configuration: its default, and a check of values. */
export interface Field<T> {
  readonly default: T;
  /** The valid values, in words. */
  readonly expected: string;
  holds(value: unknown): boolean;
}

/** The fields of a family, by their names in Hugging Face's config.json. */
export type Fields = Readonly<Record<string, Field<unknown>>>;

/** A configuration that has every field. */
export type ConfigOf<F extends Fields> = {
  readonly [Name in keyof F]: F[Name] extends Field<infer T> ? T : never;
};

/** Limits of sizes and depths: a config.json above them is a mistake or an attack, and would fill memory. */
const [MAX_SIZE, MAX_DEPTH] = [2 ** 27, 4_096];
/** Limit of a head's classes. */
export const MAX_LABELS = 2 ** 18;

function field<T>(value: T, expected: string, holds: (given: unknown) => boolean): Field<T> {
  return { default: value, expected, holds };
}

function orNull<T>({ expected, holds }: Field<T>): Field<T | null> {
  return field<T | null>(null, `null or ${expected}`, (given) => given === null || holds(given));
}

/** A size, at least one. */
export function size(value: number): Field<number> {
  return field(value, `a whole number from 1 to ${MAX_SIZE}`, isSize);
}

/** A number of layers, which are all built before any weight is read. */
export function depth(value: number): Field<number> {
  const holds = (given: unknown) => isSize(given) && (given as number) <= MAX_DEPTH;
  return field(value, `a whole number from 1 to ${MAX_DEPTH}`, holds);
}

/** A size, or null if it follows from other fields. */
export function sizeOrNull(): Field<number | null> {
  return orNull(size(1));
}

/** A size, or height and width. */
export function sizeOrPair(value: number): Field<number | readonly [number, number]> {
  const isPair = (given: unknown) => Array.isArray(given) && given.length === 2 && given.every(isSize);
  return field<number | readonly [number, number]>(
    value,
    "a whole number ≥ 1, or two",
    (given) => isSize(given) || isPair(given),
  );
}

/** A list of layer sizes. */
export function sizes(values: readonly number[]): Field<readonly number[]> {
  const holds = (given: unknown) => Array.isArray(given) && given.length > 0 && given.every(isSize);
  return field(values, "a list of whole numbers ≥ 1", holds);
}

/** A token's id, or null for none. */
export function tokenId(value: number | null): Field<number | null> {
  return { ...orNull(field(0, "a whole number ≥ 0", isTokenId)), default: value };
}

/** A dropout probability. */
export function probability(value: number): Field<number> {
  return field(value, "in [0, 1)", (given) => typeof given === "number" && given >= 0 && given < 1);
}

/** A dropout probability, or null to use another field's. */
export function probabilityOrNull(): Field<number | null> {
  return orNull(probability(0));
}

/** A number above 0. */
export function positive(value: number): Field<number> {
  return field(value, "positive", (given) => Number.isFinite(given) && (given as number) > 0);
}

/** Any number. */
export function number(value: number): Field<number> {
  return field(value, "a number", Number.isFinite);
}

/** A switch. */
export function flag(value: boolean): Field<boolean> {
  return field(value, "true or false", (given) => typeof given === "boolean");
}

/** One of some words, or null. */
export function oneOf<Word extends string | null>(value: Word, words: readonly Word[]): Field<Word> {
  return field(value, `one of ${words.join(", ")}`, (given) => words.includes(given as Word));
}

/** The name of an activation. */
export function activation(value: ActivationName): Field<ActivationName> {
  return oneOf(value, Object.keys(activations) as ActivationName[]);
}

/** Names of a classifier's outputs, by number. */
export type LabelNames = Readonly<Record<string, string>>;

/** Labels of a head: two unless the file names them. */
export function labelNames(): Field<LabelNames> {
  const isNumbered = (keys: readonly string[]) =>
    keys.length > 0 && keys.every((key) => isSize(Number(key) + 1) && Number(key) < keys.length);
  const holds = (given: unknown) =>
    typeof given === "object" && given !== null && isNumbered(Object.keys(given));
  return field({ "0": "LABEL_0", "1": "LABEL_1" }, "a record of labels, numbered from 0", holds);
}

/** Kind of a classifier's labels, as `problem_type` in config.json; null: decided by the labels. */
export type ProblemType = "regression" | "single_label_classification" | "multi_label_classification" | null;

/** The kind of a head's labels. */
export function problemType(): Field<ProblemType> {
  const kinds = ["regression", "single_label_classification", "multi_label_classification"] as const;
  return oneOf<ProblemType>(null, [null, ...kinds]);
}

/** Rules for the other fields of a family's config.json. */
export interface ConfigRules {
  /** Name in messages: "BertConfig". */
  readonly where: string;
  readonly modelType: string;
  /** Switches of computations that this library lacks: they must be absent, null or false. */
  readonly unsupported?: readonly string[];
  /** Fields that are read elsewhere: older names, or combinations of fields. */
  readonly alsoRead?: readonly string[];
  /** For fields nested in another config.json: whether that is a file. Default: decided by the fields themselves. */
  readonly inFile?: boolean;
}

/** Tokens of a vocabulary with a purpose: for generation, and for the file. */
const specialTokens = ["bos", "eos", "pad", "sep", "cls", "mask"].map((name) => `${name}_token_id`);

/** Fields of every family that change no computation, or are only read to find a model. */
const general = ["model_type", "num_labels", "id2label", "label2id", "problem_type", ...specialTokens];

/** Marks the fields of a file. A symbol is kept by spreads and never in JSON. */
const ofFile = Symbol("fields of a config.json");

/**
 * Marks fields as those of a file, which may contain many that the model does not use; the mark is kept by `{ ...fields }`.
 * @param fields - the parsed config.json of a model folder
 */
export function configOfFile<T extends Readonly<Record<string, unknown>>>(fields: T): T {
  return { ...fields, [ofFile]: true };
}

/** Whether fields are those of a file: marked by {@link configOfFile}, or with transformers' version. */
export function isConfigFile(given: Readonly<Record<string, unknown>>): boolean {
  return (
    ofFile in given ||
    ["architectures", "transformers_version", "_name_or_path"].some((name) => name in given)
  );
}

/**
 * Refuses a field that the family lacks, which would otherwise silently train a different model.
 * @param names - of all fields that are read
 * @throws {TroupeError} `MODEL_CONFIG`
 */
function refuseUnknownFields(
  where: string,
  given: Readonly<Record<string, unknown>>,
  names: readonly string[],
): void {
  const known = [...names, ...general];
  const unknown = Object.keys(given).find((name) => !known.includes(name));
  if (unknown === undefined) return;
  const parts = { where, expected: "a field of the model", got: unknown, hint: whatWasMeant(unknown, known) };
  throw new TroupeError("MODEL_CONFIG", { ...parts, fields: { field: unknown } });
}

/**
 * Completes fields with a family's defaults and checks them. A file may also have fields that change neither the model nor its
 * training (library versions); a job's fields must all be known. `num_labels` may replace `id2label`, or override a file's for a head
 * of another size, as in transformers' `from_pretrained(folder, num_labels=3)`. Given special tokens are kept if the vocabulary has them.
 * @param given - some of the fields, or the parsed config.json of a model folder
 * @throws {TroupeError} `MODEL_CONFIG` naming the field, what it must be and what it is
 */
export function readConfig<F extends Fields>(
  { where, modelType, unsupported = [], alsoRead = [], inFile }: ConfigRules,
  fields: F,
  given: Readonly<Record<string, unknown>>,
): ConfigOf<F> {
  const isFile = inFile ?? isConfigFile(given);
  if (!isFile) refuseUnknownFields(where, given, [...Object.keys(fields), ...unsupported, ...alsoRead]);
  const named = "id2label" in fields ? withLabels(where, given, isFile) : given;
  const types = [undefined, modelType];
  checkField(
    where,
    "model_type",
    types.includes(named.model_type as string),
    `"${modelType}"`,
    named.model_type,
  );
  for (const name of unsupported)
    checkField(where, name, !named[name], "absent or false: this library lacks it", named[name]);
  const config: Record<string, unknown> = {};
  for (const [name, field] of Object.entries(fields)) {
    const value = named[name] === undefined ? field.default : named[name];
    checkField(where, name, field.holds(value), field.expected, value);
    config[name] = value;
  }
  return { ...tokensOf(given, config.vocab_size), ...config } as ConfigOf<F>;
}

/** Returns the given special tokens, one or a list for a purpose. A file with a reduced vocabulary often keeps ids of the old one. */
function tokensOf(
  given: Readonly<Record<string, unknown>>,
  vocabSize: unknown,
): Readonly<Record<string, unknown>> {
  const isToken = (id: unknown) => isTokenId(id) && (id as number) < Number(vocabSize);
  const tokens = specialTokens.filter(
    (name) => given[name] !== undefined && [given[name] ?? []].flat().every(isToken),
  );
  return Object.fromEntries(tokens.map((name) => [name, given[name]]));
}

/** @throws {TroupeError} `MODEL_CONFIG` unless `holds` */
export function checkField(
  where: string,
  field: string,
  holds: boolean,
  expected: string,
  got: unknown,
  hint?: string,
): void {
  if (holds) return;
  throw new TroupeError("MODEL_CONFIG", {
    where,
    expected: `${field} to be ${expected}`,
    got: JSON.stringify(got) ?? "none",
    hint,
    fields: { field, got },
  });
}

/** @throws {TroupeError} `MODEL_CONFIG` unless the heads divide the width */
export function checkHeads(
  where: string,
  { hidden_size: width, num_attention_heads: heads }: { hidden_size: number; num_attention_heads: number },
): void {
  const isMultiple = width % heads === 0;
  checkField(where, "hidden_size", isMultiple, `a multiple of num_attention_heads = ${heads}`, width);
}

/** The config.json with which `transformers` reads a folder as `architecture`. */
export function configJsonOf(
  config: Readonly<Record<string, ConfigField>>,
  modelType: string,
  architecture: string,
): Readonly<Record<string, ConfigField>> {
  const { id2label } = config;
  const label2id =
    id2label === undefined
      ? {}
      : {
          label2id: Object.fromEntries(
            Object.entries(id2label as LabelNames).map(([id, label]) => [label, Number(id)]),
          ),
        };
  return { architectures: [architecture], model_type: modelType, ...readable(config), ...label2id };
}

/** Floats that JSON would write as integers, which transformers refuses: left out, since they are its defaults. */
const wholeDefaults: Readonly<Record<string, number>> = {
  initializer_factor: 1,
  encoder_layerdrop: 0,
  decoder_layerdrop: 0,
};

function readable(config: Readonly<Record<string, ConfigField>>): Readonly<Record<string, ConfigField>> {
  const kept = Object.entries(config).filter(
    ([name, value]) => !Object.hasOwn(wholeDefaults, name) || value !== wholeDefaults[name],
  );
  return Object.fromEntries(
    kept.map(([name, value]) => [name, name.endsWith("_config") ? readable(value as typeof config) : value]),
  );
}

/** Number of labels of a configuration. */
export function numLabels({ id2label }: { readonly id2label: LabelNames }): number {
  return Object.keys(id2label).length;
}

function withLabels(
  where: string,
  given: Readonly<Record<string, unknown>>,
  isFile: boolean,
): Readonly<Record<string, unknown>> {
  const { num_labels: count, id2label: labels } = given;
  if (count == null) return { ...given, id2label: labels ?? undefined };
  const isCount = isSize(count) && (count as number) <= MAX_LABELS;
  checkField(where, "num_labels", isCount, `a whole number from 1 to ${MAX_LABELS}`, count);
  if (labels != null) {
    const named = Object.keys(labels).length;
    if (named === count) return given;
    checkField(where, "num_labels", isFile, `${named}, as many as id2label names`, count);
  }
  const names = Array.from({ length: count as number }, (_, id) => [String(id), `LABEL_${id}`]);
  return { ...given, id2label: Object.fromEntries(names) };
}

function isTokenId(value: unknown): boolean {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

function isSize(value: unknown): boolean {
  return Number.isSafeInteger(value) && (value as number) >= 1 && (value as number) <= MAX_SIZE;
}
