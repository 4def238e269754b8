import "./module/show-module.ts"; // defines how console.log shows a Module

export {
  type AttentionOptions,
  attention,
  joinHeads,
  paddingMask,
  splitHeads,
} from "./attention/attention.ts";
export * from "./attention/decoding.ts";
export { crossAttention, selfAttention } from "./attention/kept-attention.ts";
export {
  firstPositions,
  lengthsOf,
  type PackedRow,
  packedRow,
  positionsIn,
  rowsOfTheirOwn,
  seenBy,
} from "./attention/packed-row.ts";
export { type PagedText, Pages, type PlacedToken, pagedInputs, type ReadTexts } from "./attention/pages.ts";
export * from "./attention/relative-position-bias.ts";
export {
  anglesAt,
  attentionFactorOf,
  type RotaryAngles,
  type RotaryScaling,
  rotaryAngles,
  rotaryFrequencies,
  rotate,
} from "./attention/rotary.ts";
export * from "./fusion.ts";
export * as init from "./init.ts";
export { type ActivationName, activations, gated, geluForm } from "./layers/activation.ts";
export * from "./layers/batch-norm.ts";
export { Conv1d, Conv2d, type ConvolutionOptions } from "./layers/convolution.ts";
export * from "./layers/drawing.ts";
export { Dropout, type MaskSplit } from "./layers/dropout.ts";
export * from "./layers/embedding.ts";
export * from "./layers/group-norm.ts";
export * from "./layers/layer-drop.ts";
export * from "./layers/layer-norm.ts";
export { Affine, type AffineOptions, Conv1D, type FeatureScale, Linear } from "./layers/linear.ts";
export { behindPrefix, isPrefixed, PrefixHeads, type PrefixTable, setPrefix } from "./layers/prefix.ts";
export * from "./layers/rms-norm.ts";
export * from "./layers/vocabulary-head.ts";
export * from "./layers/weight-norm.ts";
export * from "./losses/ctc-loss.ts";
export { crossEntropy, IGNORE_INDEX, linearCrossEntropy, shiftLabels } from "./losses/loss.ts";
export type { ClassShare, LossOptions } from "./losses/weighed-rows.ts";
export { cutBlocks } from "./module/blocks.ts";
export * from "./module/buffer.ts";
export {
  constant,
  type DefinedInitializer,
  defineInitializer,
  fromValues,
  type Initializer,
  type InitialRange,
  type InitialValuesOf,
  initializeSlice,
  loadInitializers,
  normal,
  ones,
  type ParameterSpec,
  uniform,
  zeros,
} from "./module/initializer.ts";
export * from "./module/materialize.ts";
export * from "./module/module.ts";
export { ModuleList } from "./module/module-list.ts";
export * from "./module/parameter.ts";
export { cutShape, logicalRuns, type ParameterSplit, type SplitOptions } from "./module/parameter-split.ts";
export { Identity, Sequential, type SequentialItem } from "./module/sequential.ts";
export * from "./moe/experts.ts";
export { MixtureOfExperts, type MixtureOptions } from "./moe/mixture-of-experts.ts";
export { type Choice, combine, dispatch, type GateOptions, type Routing, route } from "./moe/routing.ts";
export * from "./random/random-tensors.ts";
export * from "./random/randomness.ts";
export * from "./record.ts";
export * from "./tensor-plan.ts";
