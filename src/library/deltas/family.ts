import type { Module } from "../../compute/nn/index.ts";
import { type FamilyDeltas, families, familyOf } from "../models/index.ts";

/** peft's names of the tasks of architectures. */
const tasks: Readonly<Record<string, string>> = {
  ForSequenceClassification: "SEQ_CLS",
  ForTokenClassification: "TOKEN_CLS",
  ForQuestionAnswering: "QUESTION_ANS",
  ForConditionalGeneration: "SEQ_2_SEQ_LM",
  ForCausalLM: "CAUSAL_LM",
  LMHeadModel: "CAUSAL_LM",
};

/** Heads that peft trains and saves as well if they are new. */
const heads: Readonly<Record<string, readonly string[]>> = {
  SEQ_CLS: ["classifier", "score"],
  TOKEN_CLS: ["classifier", "score"],
  QUESTION_ANS: ["qa_outputs"],
};

interface Described {
  readonly configJson?: { readonly model_type?: unknown; readonly architectures?: unknown };
}

/** peft's name of a model's task; null if its config.json does not tell. */
export function peftTask(model: Module): string | null {
  const { architectures } = (model as Described).configJson ?? {};
  const [architecture] = Array.isArray(architectures) ? (architectures as string[]) : [];
  const suffix = Object.keys(tasks).find(
    (ending) => typeof architecture === "string" && architecture.endsWith(ending),
  );
  return suffix === undefined ? null : (tasks[suffix] ?? null);
}

/** Names of the modules that are new in a model's task. */
export function headsOf(model: Module): readonly string[] {
  return heads[peftTask(model) ?? ""] ?? [];
}

/** How deltas fit a model's family; empty for an unknown family. */
export function deltasOf(model: Module): FamilyDeltas {
  const { model_type } = (model as Described).configJson ?? {};
  return familyOf({ model_type })?.deltas ?? {};
}

/** The first family's answer about a model, whatever its config.json says: a job's own model may use a family's modules. */
export function amongFamilies<Answer>(
  answerOf: (deltas: FamilyDeltas) => Answer | undefined,
): Answer | undefined {
  for (const { deltas } of families()) {
    const answer = deltas && answerOf(deltas);
    if (answer !== undefined) return answer;
  }
  return undefined;
}
