import "./module/show-module.ts"; // defines how console.log shows a Module

export {
  type AttentionOptions,
  attention,
  joinHeads,
  paddingMask,
  splitHeads,
} from "./attention/attention.ts";
export { Decoding, isWriting, madeOnce, numPast, positionsHere, withPast } from "./attention/decoding.ts";
export {
  firstPositions,
  lengthsOf,
  type PackedRow,
  packedRow,
  positionsIn,
  rowsOfTheirOwn,
  seenBy,
} from "./attention/packed-row.ts";
export {
  type RelativeBuckets,
  RelativePositionBias,
  relativeBucket,
} from "./attention/relative-position-bias.ts";
export {
  anglesAt,
  attentionFactorOf,
  type RotaryAngles,
  type RotaryScaling,
  rotaryAngles,
  rotaryFrequencies,
  rotate,
} from "./attention/rotary.ts";
export { isFused, unfused } from "./fusion.ts";
export * as init from "./init.ts";
export { type ActivationName, activations, gated } from "./layers/activation.ts";
export { BatchNorm1d, BatchNorm2d, type BatchNormOptions } from "./layers/batch-norm.ts";
export { Conv1d, Conv2d, type ConvolutionOptions } from "./layers/convolution.ts";
export { bindRandomness, type Draw, Drawing } from "./layers/drawing.ts";
export { Dropout, type MaskSplit } from "./layers/dropout.ts";
export { Embedding } from "./layers/embedding.ts";
export { GroupNorm } from "./layers/group-norm.ts";
export { LayerDrop } from "./layers/layer-drop.ts";
export { BareLayerNorm, LayerNorm } from "./layers/layer-norm.ts";
export { Affine, type AffineOptions, Conv1D, type FeatureScale, Linear } from "./layers/linear.ts";
export { behindPrefix, PrefixHeads, type PrefixTable, setPrefix } from "./layers/prefix.ts";
export { RMSNorm } from "./layers/rms-norm.ts";
export { addedTo, type HeadRequest, lastPositions, VocabularyHead } from "./layers/vocabulary-head.ts";
export { WeightNormConv1d } from "./layers/weight-norm.ts";
export { type CtcOptions, ctcLoss } from "./losses/ctc-loss.ts";
export { crossEntropy, IGNORE_INDEX, linearCrossEntropy, shiftLabels } from "./losses/loss.ts";
export type { ClassShare, LossOptions } from "./losses/weighed-rows.ts";
export { cutBlocks } from "./module/blocks.ts";
export { type BufferOptions, ModuleBuffer } from "./module/buffer.ts";
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
export {
  dematerialize,
  materialize,
  materializeTransient,
  specOf,
} from "./module/materialize.ts";
export { evaluating, failedModule, joinName, Module, wrapForward } from "./module/module.ts";
export { ModuleList } from "./module/module-list.ts";
export { Parameter, type ParameterRole } from "./module/parameter.ts";
export { cutShape, logicalRuns, type ParameterSplit, type SplitOptions } from "./module/parameter-split.ts";
export { Identity, Sequential, type SequentialItem } from "./module/sequential.ts";
export { ExpertMLP, Experts } from "./moe/experts.ts";
export { MixtureOfExperts, type MixtureOptions } from "./moe/mixture-of-experts.ts";
export { type Choice, combine, dispatch, type GateOptions, type Routing, route } from "./moe/routing.ts";
export { RandomGenerator, rand, randint, randn } from "./random/random-tensors.ts";
export { Randomness, streamOf } from "./random/randomness.ts";
export {
  joinNumbers,
  presentRecording,
  type RecordedTensor,
  recordedOnce,
  recordTensor,
  stackedShape,
  TensorRecording,
} from "./record.ts";
export {
  below,
  type ColumnRule,
  column,
  type FeaturesRule,
  features,
  type MaskRule,
  mask,
  planTest,
  type ReplicatedRule,
  type RowRule,
  replicated,
  row,
  type SequenceRule,
  type SplitRule,
  sequence,
  type TensorPlan,
  type TensorSplittable,
  unshared,
  type VocabularyRule,
  vocabulary,
} from "./tensor-plan.ts";
