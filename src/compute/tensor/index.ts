/** Tensors: libtorch's memory and operators behind handles that scopes release. Other rooms import this file only. */
import "./methods.generated.ts"; // defines the operators as methods of Tensor
import "./summary/show-tensor.ts"; // defines how console.log shows a Tensor

export { type AutocastDType, autocast, withoutAutocast } from "./autocast.ts";
export { enableGrad, type GradOptions, grad, gradEnabled, noGrad } from "./autograd.ts";
export { type BackwardOptions, backward, refuseBackward } from "./backward.ts";
export {
  type BesideCopy,
  copyBeside,
  copyOffThread,
  emptyPinned,
  type LateNumber,
  onHost,
  overHost,
  readLater,
} from "./copies.ts";
export {
  arange,
  type CreateOptions,
  empty,
  emptyShared,
  emptySharedOffThread,
  full,
  mapFile,
  type NestedNumbers,
  ones,
  type Shape,
  tensor,
  zeros,
} from "./create.ts";
export {
  DEVICE_KINDS,
  type Device,
  type DeviceKind,
  deviceCount,
  enterDevice,
  onDevice,
  parseDevice,
  requireDevice,
  streamOrder,
} from "./device.ts";
export { arrayFor, type DType, dtypes, itemBytes, type TypedArray } from "./dtype.ts";
export {
  chargeThreadTo,
  type GpuMemory,
  gpuMemory,
  type MemoryUse,
  memory,
  releaseCachedMemory,
  resetPeakMemory,
  type TagUse,
  tagMemory,
} from "./memory/memory.ts";
export { isMetered, isOnGpu, type Meter, type MeteredDevice, metered } from "./memory/meter.ts";
export { emptyPaged, markOffloaded, occupy, sharesMemory, vacate } from "./memory/paged.ts";
export {
  type BlockingTransfer,
  giveMemoryUp,
  PAGE_BYTES,
  pageAligned,
  ScratchFile,
  takeMemoryBack,
} from "./memory/scratch-file.ts";
// `native`, `liveHandle` and `adoptList` are for rooms that call the addon themselves.
export { loadNative, type Metered, type NativeInfo, native } from "./native.ts";
export { numelOf } from "./numel.ts";
export { emptyLike, fullLike, onesLike, zerosLike } from "./ops.generated.ts";
export * as ops from "./ops.ts";
export { type Binding, bindThread } from "./processors.ts";
export {
  attach,
  type ExportedTensor,
  exportRef,
  importRef,
  liveRefs,
  moveRef,
  type PackedTensor,
  packRef,
  type RefOptions,
  releaseRef,
  releaseRefsOf,
  shareRef,
  type TensorRef,
  unpackRef,
} from "./ref.ts";
export { hold, keep, liveTensors, OpenScope, scope, scopeUnlessAsync } from "./scope.ts";
export { type Buckets, bucketLimit, bucketsOf, joinBuckets } from "./summary/buckets.ts";
export {
  joinStatistics,
  NO_VALUES,
  type Statistics,
  scaleStatistics,
  standardDeviation,
  statisticsOf,
} from "./summary/statistics.ts";
export {
  enterSharedFolder,
  leaveSharedFolder,
  mapShared,
  nativeInfo,
  numThreads,
  setNumThreads,
} from "./system.ts";
export { adoptList, liveHandle, Tensor } from "./tensor.ts";
