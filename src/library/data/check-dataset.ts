import { describeValue, isRecord, TroupeError } from "../../errors/index.ts";
import type { Dataset, Fingerprint, Scores } from "./dataset.ts";

/** Optional functions of a dataset. */
const OPTIONAL = ["countTokens", "score", "fingerprint"] as const;

/**
 * Checks that a value, returned by a job's `data(…)` or made by a script, is a dataset.
 * @throws {TroupeError} `DATA_INVALID`, with everything that is wrong
 */
export function checkDataset(value: unknown): asserts value is Dataset {
  if (!isRecord(value)) throw invalid(describeValue(value));
  const { facts, splits, batch } = value as Partial<Record<string, unknown>>;
  const wrong = [
    ...wrongOfFacts(facts),
    ...wrongOfSplits(splits),
    ...(typeof batch === "function" ? [] : [`batch: ${describeValue(batch)}`]),
    ...OPTIONAL.flatMap((name) => {
      const given = (value as Partial<Record<string, unknown>>)[name];
      return given === undefined || typeof given === "function" ? [] : [`${name}: ${describeValue(given)}`];
    }),
  ];
  if (wrong.length > 0) throw invalid(wrong.join("; "));
}

/** Checks a number of tokens. @throws {TroupeError} `DATA_INVALID` */
export function checkNumTokens(value: unknown): asserts value is number | undefined {
  if (value === undefined || (typeof value === "number" && value >= 0 && value < Infinity)) return;
  throw answered("countTokens(…)", "a finite number of at least 0", value, "a tensor's number: .item()");
}

/** Checks scores: a record of numbers, which may be NaN. @throws {TroupeError} `DATA_INVALID` */
export function checkScores(value: unknown): asserts value is Scores {
  if (!isRecord(value)) throw answered("score(…)", "a record of numbers", value);
  for (const [name, score] of Object.entries(value))
    if (typeof score !== "number") throw answered("score(…)", `a number as ${name}`, score);
}

/** Checks a fingerprint: values that a checkpoint can store. @throws {TroupeError} `DATA_INVALID` */
export function checkFingerprint(value: unknown): asserts value is Fingerprint {
  if (!isRecord(value)) throw answered("fingerprint()", "a record of texts, numbers and booleans", value);
  for (const [name, item] of Object.entries(value))
    if (!["string", "number", "boolean"].includes(typeof item))
      throw answered("fingerprint()", `a text, a number, true or false as ${name}`, item);
}

function wrongOfFacts(facts: unknown): string[] {
  if (!isRecord(facts)) return [`facts: ${describeValue(facts)}`];
  const { source, vocabSize } = facts as Partial<Record<string, unknown>>;
  const wrong = typeof source === "string" ? [] : [`facts.source: ${describeValue(source)}`];
  const isSize = vocabSize === undefined || (Number.isSafeInteger(vocabSize) && (vocabSize as number) > 0);
  if (!isSize) wrong.push(`facts.vocabSize: ${describeValue(vocabSize)}`);
  // They are sent to every rank.
  try {
    structuredClone(facts);
  } catch (error) {
    wrong.push(`facts that are not plain data: ${(error as Error).message}`);
  }
  return wrong;
}

function wrongOfSplits(splits: unknown): string[] {
  if (!isRecord(splits)) return [`splits: ${describeValue(splits)}`];
  return Object.entries(splits).flatMap(([name, split]) => {
    const numSamples: unknown = isRecord(split) ? split.numSamples : undefined;
    const isCount =
      numSamples === Infinity || (Number.isSafeInteger(numSamples) && (numSamples as number) >= 0);
    return isCount ? [] : [`splits.${name}.numSamples: ${describeValue(numSamples)}`];
  });
}

function invalid(got: string): TroupeError {
  const expected =
    "data(…) to give { facts: { source, … }, splits: { train: { numSamples }, … }, batch(split, position, numSamples) }";
  return new TroupeError("DATA_INVALID", { where: "data", expected, got, fields: { got } });
}

function answered(of: string, expected: string, value: unknown, hint?: string): TroupeError {
  const got = describeValue(value);
  return new TroupeError("DATA_INVALID", {
    where: "data",
    expected: `${of} to give ${expected}`,
    got,
    ...(hint === undefined ? {} : { hint }),
    fields: { got },
  });
}
