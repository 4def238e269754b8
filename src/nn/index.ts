export { type ActivationName, activations } from "./activation.ts";
export { type AttentionOptions, attention, joinHeads, paddingMask, splitHeads } from "./attention.ts";
export { BatchNorm1d, BatchNorm2d, type BatchNormOptions } from "./batch-norm.ts";
export { type BlockCut, cutBlocks, type ModuleBlock } from "./blocks.ts";
export { Buffer, type BufferOptions } from "./buffer.ts";
export { Conv1d, Conv2d, type ConvolutionOptions } from "./convolution.ts";
export { type CtcOptions, ctcLoss } from "./ctc-loss.ts";
export { Decoding, madeOnce, numPast, positionsHere, withPast } from "./decoding.ts";
export { bindRandomness, type Draw, Drawing } from "./drawing.ts";
export { Dropout, type MaskSplit } from "./dropout.ts";
export { Embedding } from "./embedding.ts";
export { evaluating } from "./evaluating.ts";
export { gated } from "./gated.ts";
export { GroupNorm } from "./group-norm.ts";
export { Identity } from "./identity.ts";
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
} from "./initializer.ts";
export { LayerDrop } from "./layer-drop.ts";
export { LayerNorm } from "./layer-norm.ts";
export { type AddedProduct, Affine, type AffineOptions, Conv1D, Linear } from "./linear.ts";
export { crossEntropy, IGNORE_INDEX, linearCrossEntropy, shiftLabels } from "./loss.ts";
export { dematerialize, materialize, materializeTransient, parameterSpecs, specOf } from "./materialize.ts";
export { failedModule, joinName, Module, wrapForward } from "./module.ts";
export { ModuleList } from "./module-list.ts";
export { ExpertMLP, Experts } from "./moe/experts.ts";
export { MixtureOfExperts, type MixtureOptions } from "./moe/mixture-of-experts.ts";
export { type Choice, combine, dispatch, type GateOptions, type Routing, route } from "./moe/routing.ts";
export { firstPositions, lengthsOf, type PackedRow, packedRow, positionsIn, seenBy } from "./packed-row.ts";
export { Parameter, type ParameterRole } from "./parameter.ts";
export {
  cutShape,
  type LogicalRun,
  logicalRuns,
  type ParameterSplit,
  type SplitOptions,
} from "./parameter-split.ts";
export { behindPrefix, PrefixHeads, setPrefix } from "./prefix.ts";
export { Generator, rand, randint, randn } from "./random-tensors.ts";
export { Randomness, streamOf } from "./randomness.ts";
export {
  presentRecording,
  type RecordedTensor,
  recordedOnce,
  recordTensor,
  stackedShape,
  TensorRecording,
} from "./record.ts";
export {
  type RelativeBuckets,
  RelativePositionBias,
  relativeBucket,
} from "./relative-position-bias.ts";
export { RMSNorm } from "./rms-norm.ts";
export {
  attentionFactorOf,
  type RotaryAngles,
  type RotaryScaling,
  rotaryAngles,
  rotaryFrequencies,
  rotate,
} from "./rotary.ts";
export { Sequential, type SequentialItem } from "./sequential.ts";
export {
  below,
  type ColumnRule,
  column,
  type FeaturesRule,
  features,
  type Held,
  type MaskRule,
  mask,
  planTest,
  type RowRule,
  row,
  type SequenceRule,
  type SplitRule,
  sequence,
  type TensorPlan,
  type TensorSplittable,
  type VocabularyRule,
  vocabulary,
  type WholeRule,
  whole,
} from "./tensor-plan.ts";
export { addedTo, type HeadRequest, lastPositions, VocabularyHead } from "./vocabulary-head.ts";
export type { ClassShare, LossOptions } from "./weighed-rows.ts";
export { WeightNorm, WeightNormConv1d } from "./weight-norm.ts";
