/** Converts models between formats, bit by bit: Hugging Face, Megatron-LM, FairSeq, ModelCenter, safetensors, Troupe. */
export { type ConvertOptions, convert, convertKinds } from "./convert.ts";
export { openSource } from "./source.ts";
