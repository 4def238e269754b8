import { TroupeError, whatWasMeant } from "../../errors/index.ts";
import { ownValue } from "../../errors/untrusted/index.ts";
import { families, familyOf } from "./families.ts";
import type { Task, TaskModel } from "./task-model.ts";

type Fields = Readonly<Record<string, unknown>>;

/** Tasks by the end of an architecture's name, unless the family says otherwise. */
const tasksBySuffix: Readonly<Record<string, Task>> = {
  ForPreTraining: "pretraining",
  ForMaskedLM: "masked_lm",
  ForSequenceClassification: "sequence_classification",
  ForTokenClassification: "token_classification",
  ForQuestionAnswering: "question_answering",
  LMHeadModel: "causal_lm",
  ForCausalLM: "causal_lm",
  ForConditionalGeneration: "seq2seq_lm",
  ForImageClassification: "image_classification",
  ForCTC: "speech_recognition",
};

/**
 * Declares a family's model for a task, without memory.
 * @param task - as in Rapidformer
 * @param config - the parsed config.json of a model folder
 * @throws {TroupeError} `MODEL_TASK` for an unknown family or task, with the nearest name; `MODEL_CONFIG`
 */
export function autoModel(task: Task, config: Fields): TaskModel {
  const type = String(config.model_type);
  const family = familyOf(config);
  if (family === undefined) {
    const types = families().map(({ modelType }) => modelType);
    throw refuse("a model_type of this library", type, whatWasMeant(type, types));
  }
  const Model = ownValue(family.heads, task);
  if (Model === undefined) {
    const tasks = Object.keys(family.heads);
    throw refuse(`a task that ${type} has a head for`, String(task), whatWasMeant(task, tasks));
  }
  return new Model(config);
}

/** The task of a folder's model, by the first of its `architectures`; undefined if there is none, or it has no head. */
export function taskOf(config: Fields): Task | undefined {
  const [architecture] = Array.isArray(config.architectures) ? (config.architectures as unknown[]) : [];
  if (typeof architecture !== "string") return undefined;
  const named = families().flatMap((family) => Object.entries(family.architectures ?? {}));
  const all = [...named, ...Object.entries(tasksBySuffix)];
  return all.find(([ending]) => architecture.endsWith(ending))?.[1];
}

/** Whether {@link autoModel} has a class for a task. */
export function hasModel(task: Task, config: Fields): boolean {
  return ownValue(familyOf(config)?.heads ?? {}, task) !== undefined;
}

function refuse(expected: string, got: string, hint: string): TroupeError {
  return new TroupeError("MODEL_TASK", { where: "autoModel", expected, got, hint, fields: { got } });
}
