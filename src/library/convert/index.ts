/** Models from one form of checkpoint to another, bit by bit: Hugging Face, Megatron-LM, FairSeq, ModelCenter, safetensors, Troupe's own. */
export { type ConvertOptions, convert, convertKinds } from "./convert.ts";
export { openSource } from "./source.ts";
