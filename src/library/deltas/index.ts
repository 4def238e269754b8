export { type AdapterOptions, adapter } from "./adapter.ts";
export { type BitFitOptions, bitFit } from "./bit-fit.ts";
export { applyDelta, type Delta, type DeltaJson, deltaOf, hasBase, tunedState } from "./delta.ts";
export { type Ia3Options, ia3 } from "./ia3.ts";
export { type LoraOptions, lora } from "./lora.ts";
export { mergeDelta } from "./merge.ts";
export {
  adapterConfig,
  deltaFrom,
  loadDelta,
  matchDelta,
  saveDelta,
} from "./peft-folder.ts";
export { ownName, peftName } from "./peft-names.ts";
export { type PrefixOptions, prefix } from "./prefix.ts";
export type { PromptEncoderOptions } from "./prompt-encoder.ts";
export { type SoftPromptOptions, softPrompt } from "./soft-prompt.ts";
export type { Target } from "./target.ts";
