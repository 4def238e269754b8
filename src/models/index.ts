export { type GenerateOptions, generate } from "./generate.ts";
export { type GPT2Config, gpt2Config, gpt2ConfigJson, gpt2Defaults } from "./gpt2/config.ts";
export { GPT2Attention, GPT2Block, GPT2LMHeadModel, GPT2MLP, GPT2Model } from "./gpt2/gpt2.ts";
export type { LanguageModel, Logits, Loss, TextTargets } from "./language-model.ts";
export {
  loadWeights,
  matchWeights,
  type NamedState,
  type StateEntry,
  type StateNaming,
  type WeightMatch,
  type WeightSource,
} from "./weights.ts";
