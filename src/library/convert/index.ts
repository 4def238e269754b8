/** Converts models between formats, bit by bit: Hugging Face, Megatron-LM, FairSeq, ModelCenter, safetensors, Troupe. */
export { type ConvertOptions, convert, convertKinds } from "./convert.ts";
export type { ConvertSource } from "./convert-source.ts";
export type { LazyTensor } from "./lazy-tensor.ts";
export { openSource } from "./source.ts";
export { writeBeside } from "./write-beside.ts";
