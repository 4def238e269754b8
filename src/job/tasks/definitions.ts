import { TroupeError, whatWasMeant } from "../../errors/index.ts";
import type { Batch } from "../../library/data/index.ts";
import { autoModel, type TaskModel } from "../../library/models/index.ts";
import { audioClassification } from "./audio-classification.ts";
import { causalLm } from "./causal-lm.ts";
import { chatLm } from "./chat-lm.ts";
import { imageClassification } from "./image-classification.ts";
import { imageText } from "./image-text.ts";
import { maskedLm } from "./masked-lm.ts";
import { questionAnswering } from "./question-answering.ts";
import { seq2seqLm } from "./seq2seq-lm.ts";
import { sequenceClassification } from "./sequence-classification.ts";
import { speechPretraining } from "./speech-pretraining.ts";
import { speechRecognition } from "./speech-recognition.ts";
import type { Fields, TaskDefinition, TaskFacts } from "./task.ts";
import { tokenClassification } from "./token-classification.ts";

/** Any task; only its own functions know the types of its examples and batches. */
export type AnyTask = TaskDefinition<unknown, Batch>;

// biome-ignore format: a list
const definitions = [
  sequenceClassification, tokenClassification, questionAnswering, maskedLm, causalLm, chatLm, seq2seqLm,
  imageClassification, imageText, speechPretraining, speechRecognition, audioClassification,
] as unknown as readonly AnyTask[];

/** Names of all tasks. */
export const taskNames: readonly string[] = definitions.map(nameOf);

/** @throws {TroupeError} `MODEL_TASK` with the nearest name */
export function taskNamed(name: string): AnyTask {
  const found = definitions.find((task) => nameOf(task) === name);
  if (found !== undefined) return found;
  throw new TroupeError("MODEL_TASK", {
    where: "tasks",
    expected: `one of ${taskNames.join(", ")}`,
    got: name,
    hint: whatWasMeant(name, taskNames),
    fields: { got: name },
  });
}

/**
 * Declares the model of a folder, without memory, with the head that a task's data needs.
 * @param config - the parsed config.json @param facts - of the task's dataset
 * @throws {TroupeError} `MODEL_TASK`, `MODEL_CONFIG`
 */
export function taskModel({ task }: Pick<AnyTask, "task">, config: Fields, facts: TaskFacts): TaskModel {
  return autoModel(task, { ...config, ...facts.fields });
}

function nameOf({ task, name = task }: AnyTask): string {
  return name;
}
