/** Models from one form of checkpoint to another, bit by bit: Hugging Face, Megatron-LM, FairSeq, ModelCenter, safetensors, Troupe's own. */
export { type Converted, type ConvertOptions, convert, convertKinds } from "./convert.ts";
export type { ConvertSource } from "./convert-source.ts";
export type { LazyTensor } from "./lazy-tensor.ts";
export { openSource, type SourceHints } from "./source.ts";
