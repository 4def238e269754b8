/** Tensors: libtorch's memory and operators under handles that scopes release. The only door of this room. */
import "./methods.generated.ts"; // defines the operators as methods of Tensor
import "./show-tensor.ts"; // says how console.log shows a Tensor

export { type AutocastDType, autocast, withoutAutocast } from "./autocast.ts";
export { enableGrad, type GradOptions, grad, gradEnabled, noGrad } from "./autograd.ts";
export { type BackwardOptions, backward, walkedBackBy } from "./backward.ts";
export { type BesideCopy, copyBeside, emptyPinned } from "./beside.ts";
export { type Buckets, bucketLimit, bucketsOf, joinBuckets } from "./buckets.ts";
export { copyOffThread } from "./copy-off-thread.ts";
export {
  arange,
  type CreateOptions,
  empty,
  emptyShared,
  emptySharedOffThread,
  full,
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
  namesDevice,
  onDevice,
  parseDevice,
  readBacks,
  requireDevice,
  streamOrder,
} from "./device.ts";
export { arrayFor, type DType, dtypes, itemBytes, type TypedArray } from "./dtype.ts";
export { mapFile } from "./map-file.ts";
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
} from "./memory.ts";
export { isMetered, isOnGpu, type Meter, type MeteredDevice, metered } from "./meter.ts";
// `native`, `liveHandle` and `adoptList` are for rooms that call the addon themselves.
export { loadNative, type Metered, type NativeInfo, native } from "./native.ts";
export { numelOf } from "./numel.ts";
export { emptyLike, fullLike, onesLike, zerosLike } from "./ops.generated.ts";
export * as ops from "./ops.ts";
export { overHost } from "./over-host.ts";
export { emptyPaged, markOffloaded, occupy, sharesMemory, vacate } from "./paged.ts";
export { type Binding, bindThread } from "./processors.ts";
export { type LateNumber, readLater } from "./read-later.ts";
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
export {
  type BlockingTransfer,
  giveMemoryUp,
  PAGE_BYTES,
  pageAligned,
  ScratchFile,
  takeMemoryBack,
} from "./scratch-file.ts";
export {
  joinStatistics,
  NO_VALUES,
  type Statistics,
  scaleStatistics,
  standardDeviation,
  statisticsOf,
} from "./statistics.ts";
export {
  enterSharedFolder,
  leaveSharedFolder,
  mapShared,
  nativeInfo,
  numThreads,
  selfTest,
  setNumThreads,
} from "./system.ts";
export { adoptList, liveHandle, Tensor } from "./tensor.ts";
