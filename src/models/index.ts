export { type GenerateOptions, generate } from "./generate.ts";
export { type GPT2Config, gpt2Config, gpt2Defaults } from "./gpt2/config.ts";
export { GPT2Attention, GPT2Block, GPT2LMHeadModel, GPT2MLP, GPT2Model } from "./gpt2/gpt2.ts";
export { type ExpertConfig, GPT2MoEBlock, GPT2MoELMHeadModel, type MixtureLoss } from "./gpt2/moe.ts";
export type { LanguageModel, Logits, Loss, TextTargets } from "./language-model.ts";
export { megatronModel } from "./megatron/megatron-model.ts";
export type { MegatronModel, MegatronTensor } from "./megatron/megatron-tensor.ts";
export {
  type ConfigField,
  loadWeights,
  matchWeights,
  type NamedState,
  type StateEntry,
  type StateNaming,
  type WeightBytes,
  type WeightMatch,
  type WeightSource,
  weightBytes,
} from "./weights.ts";
