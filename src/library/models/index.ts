export * from "./albert/model.ts";
export { autoModel, hasModel, taskOf } from "./auto-model.ts";
export { BartForConditionalGeneration } from "./bart/model.ts";
export {
  BertForMaskedLM,
  BertForPreTraining,
  BertForQuestionAnswering,
  BertForSequenceClassification,
  BertForTokenClassification,
} from "./bert/model.ts";
export { CLIPModel, type PicturesWithTexts, type Replicas } from "./clip/model.ts";
export { checkField, configOfFile, MAX_LABELS } from "./config-fields.ts";
export { Data2VecAudioForCTC, Data2VecAudioForSequenceClassification } from "./data2vec-audio/model.ts";
export {
  Data2VecTextForMaskedLM,
  Data2VecTextForQuestionAnswering,
  Data2VecTextForSequenceClassification,
  Data2VecTextForTokenClassification,
} from "./data2vec-text/model.ts";
export { families, familyOf } from "./families.ts";
export {
  defineFamily,
  type ExpertConfig,
  type Family,
  type FamilyDeltas,
  type FamilyFormats,
  type PrefixedAttention,
  type PrefixedStack,
  type Reader,
  type SizeNames,
  type TextForm,
} from "./family.ts";
export type { FairseqForm, FairseqModel } from "./formats/fairseq.ts";
export type { GgufForm, GgufModel, GgufTensor, GgufValue } from "./formats/gguf.ts";
export type { MegatronForm, MegatronModel, MegatronTensor } from "./formats/megatron.ts";
export type {
  Json,
  ModelCenterForm,
  ModelCenterModel,
  ModelCenterTensor,
  Spelling,
} from "./formats/model-center.ts";
export type { NeoXForm, NeoXModel } from "./formats/neox.ts";
export type { WeightRow } from "./formats/weight-map.ts";
export * from "./generation/index.ts";
export type { GPTJConfig } from "./gpt-j/config.ts";
export { GPTJForCausalLM } from "./gpt-j/model.ts";
export type { GPTNeoXConfig } from "./gpt-neox/config.ts";
export { GPTNeoXForCausalLM } from "./gpt-neox/model.ts";
export { type GPT2Config, gpt2Config } from "./gpt2/config.ts";
export { GPT2Block, GPT2LMHeadModel, GPT2Model } from "./gpt2/model.ts";
export { GPT2MoELMHeadModel, type MixtureLoss } from "./gpt2/moe.ts";
export type { CausalBatch, LanguageModel, Logits, Loss, TextPlaces, TextTargets } from "./language-model.ts";
export { type LlamaConfig, llamaConfig } from "./llama/config.ts";
export { LlamaForCausalLM, LlamaModel } from "./llama/model.ts";
export * from "./megatron-bert/model.ts";
export type { OPTConfig } from "./opt/config.ts";
export { OPTForCausalLM } from "./opt/model.ts";
export {
  RobertaForMaskedLM,
  RobertaForQuestionAnswering,
  RobertaForSequenceClassification,
  RobertaForTokenClassification,
} from "./roberta/model.ts";
export type { RopeParameters } from "./rope-parameters.ts";
export { type Seq2SeqBatch, type Seq2SeqBatch as T5Batch, shiftRight } from "./shift-right.ts";
export { encoderSizes } from "./size-names.ts";
export { type T5Config, t5Config } from "./t5/config.ts";
export { T5ForConditionalGeneration } from "./t5/model.ts";
export type { EncoderBatch, LabelledText, ModelBatch, ModelOutputs, Task, TaskModel } from "./task-model.ts";
export { ViTForImageClassification } from "./vit/model.ts";
export type { SpeechConfig, Wav2Vec2Config } from "./wav2vec2/config.ts";
export { numAdapted, numFrames } from "./wav2vec2/features.ts";
export * from "./wav2vec2/model.ts";
export { GumbelQuantizer, type Quantized } from "./wav2vec2/quantizer.ts";
export type { MaskedSpeech, SpeechForPreTraining } from "./wav2vec2/speech-for-pretraining.ts";
export type { SpeechBatch } from "./wav2vec2/speech-with-head.ts";
export * from "./weights.ts";
