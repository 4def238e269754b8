import { TroupeError, whatWasMeant } from "../../errors/index.ts";
import { ownValue } from "../../errors/untrusted/index.ts";
import * as albert from "./albert/model.ts";
import { BartForConditionalGeneration } from "./bart/model.ts";
import * as bert from "./bert/model.ts";
import { CLIPModel } from "./clip/model.ts";
import { Data2VecAudioForCTC, Data2VecAudioForSequenceClassification } from "./data2vec-audio/model.ts";
import * as data2vecText from "./data2vec-text/model.ts";
import { GPTJForCausalLM } from "./gpt-j/model.ts";
import { GPTNeoXForCausalLM } from "./gpt-neox/model.ts";
import { GPT2LMHeadModel } from "./gpt2/model.ts";
import { LlamaForCausalLM } from "./llama/model.ts";
import * as megatronBert from "./megatron-bert/model.ts";
import { OPTForCausalLM } from "./opt/model.ts";
import * as roberta from "./roberta/model.ts";
import { T5ForConditionalGeneration } from "./t5/model.ts";
import type { Task, TaskModel } from "./task-model.ts";
import { ViTForImageClassification } from "./vit/model.ts";
import {
  Wav2Vec2ForCTC,
  Wav2Vec2ForPreTraining,
  Wav2Vec2ForSequenceClassification,
} from "./wav2vec2/model.ts";

type Fields = Readonly<Record<string, unknown>>;
type TaskModelClass = new (fields: Fields) => TaskModel;

/** Which class a family has for a task; families by the `model_type` of their config.json. */
const classes: Readonly<Record<string, Partial<Record<Task, TaskModelClass>>>> = {
  bert: {
    pretraining: bert.BertForPreTraining,
    masked_lm: bert.BertForMaskedLM,
    sequence_classification: bert.BertForSequenceClassification,
    token_classification: bert.BertForTokenClassification,
    question_answering: bert.BertForQuestionAnswering,
  },
  roberta: {
    masked_lm: roberta.RobertaForMaskedLM,
    sequence_classification: roberta.RobertaForSequenceClassification,
    token_classification: roberta.RobertaForTokenClassification,
    question_answering: roberta.RobertaForQuestionAnswering,
  },
  "data2vec-text": {
    masked_lm: data2vecText.Data2VecTextForMaskedLM,
    sequence_classification: data2vecText.Data2VecTextForSequenceClassification,
    token_classification: data2vecText.Data2VecTextForTokenClassification,
    question_answering: data2vecText.Data2VecTextForQuestionAnswering,
  },
  albert: {
    masked_lm: albert.AlbertForMaskedLM,
    sequence_classification: albert.AlbertForSequenceClassification,
    token_classification: albert.AlbertForTokenClassification,
    question_answering: albert.AlbertForQuestionAnswering,
  },
  "megatron-bert": {
    pretraining: megatronBert.MegatronBertForPreTraining,
    masked_lm: megatronBert.MegatronBertForMaskedLM,
    sequence_classification: megatronBert.MegatronBertForSequenceClassification,
    token_classification: megatronBert.MegatronBertForTokenClassification,
    question_answering: megatronBert.MegatronBertForQuestionAnswering,
  },
  clip: { image_text: CLIPModel },
  gpt2: { causal_lm: GPT2LMHeadModel },
  bart: { seq2seq_lm: BartForConditionalGeneration },
  blenderbot: { seq2seq_lm: BartForConditionalGeneration },
  "data2vec-audio": {
    speech_recognition: Data2VecAudioForCTC,
    audio_classification: Data2VecAudioForSequenceClassification,
  },
  wav2vec2: {
    speech_pretraining: Wav2Vec2ForPreTraining,
    speech_recognition: Wav2Vec2ForCTC,
    audio_classification: Wav2Vec2ForSequenceClassification,
  },
  vit: { image_classification: ViTForImageClassification },
  gptj: { causal_lm: GPTJForCausalLM },
  gpt_neox: { causal_lm: GPTNeoXForCausalLM },
  opt: { causal_lm: OPTForCausalLM },
  llama: { causal_lm: LlamaForCausalLM },
  mistral: { causal_lm: LlamaForCausalLM },
  qwen2: { causal_lm: LlamaForCausalLM },
  t5: { seq2seq_lm: T5ForConditionalGeneration },
};

/** How the names of architectures in a config.json end, and what they are for. */
const tasksBySuffix: Readonly<Record<string, Task>> = {
  Wav2Vec2ForPreTraining: "speech_pretraining",
  ForPreTraining: "pretraining",
  Wav2Vec2ForSequenceClassification: "audio_classification",
  Data2VecAudioForSequenceClassification: "audio_classification",
  ForMaskedLM: "masked_lm",
  ForSequenceClassification: "sequence_classification",
  ForTokenClassification: "token_classification",
  ForQuestionAnswering: "question_answering",
  LMHeadModel: "causal_lm",
  ForCausalLM: "causal_lm",
  ForConditionalGeneration: "seq2seq_lm",
  ForImageClassification: "image_classification",
  ForCTC: "speech_recognition",
  CLIPModel: "image_text",
};

/**
 * The model that a task needs of the family that a config.json describes, declared without memory.
 * @param task - in Rapidformer's words
 * @param config - the parsed config.json of a model folder
 * @throws {TroupeError} `MODEL_TASK` for a family or a task that is not known, naming what is near; `MODEL_CONFIG`
 */
export function autoModel(task: Task, config: Fields): TaskModel {
  const type = String(config.model_type);
  const family = ownValue(classes, type);
  if (family === undefined) {
    throw refuse("a model_type of this library", type, whatWasMeant(type, Object.keys(classes)));
  }
  const Model = ownValue(family, task);
  if (Model === undefined) {
    const tasks = Object.keys(family);
    throw refuse(`a task that ${type} has a head for`, String(task), whatWasMeant(task, tasks));
  }
  return new Model(config);
}

/**
 * What the model of a folder was made for, by the first of its `architectures`; undefined where it says none, or one without
 * a head.
 */
export function taskOf(config: Fields): Task | undefined {
  const [architecture] = Array.isArray(config.architectures) ? (config.architectures as unknown[]) : [];
  if (typeof architecture !== "string") return undefined;
  const suffix = Object.keys(tasksBySuffix).find((ending) => architecture.endsWith(ending));
  return suffix === undefined ? undefined : tasksBySuffix[suffix];
}

/** Whether {@link autoModel} has a class for it. */
export function hasModel(task: Task, config: Fields): boolean {
  return ownValue(ownValue(classes, config.model_type) ?? {}, task) !== undefined;
}

function refuse(expected: string, got: string, hint: string): TroupeError {
  return new TroupeError("MODEL_TASK", { where: "autoModel", expected, got, hint }, { fields: { got } });
}
