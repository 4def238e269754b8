/** Tensors: libtorch's memory and operators behind handles that scopes release. Other rooms import this file only. */
import "./methods.generated.ts"; // defines the operators as methods of Tensor
import "./summary/show-tensor.ts"; // defines how console.log shows a Tensor

export * from "./autocast.ts";
export * from "./autograd.ts";
export { type BackwardOptions, backward, refuseBackward } from "./backward.ts";
export * from "./copies.ts";
export * from "./create.ts";
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
export { arrayFor, bytesIn, type DType, dtypes, itemBytes, type TypedArray } from "./dtype.ts";
export * from "./memory/memory.ts";
export * from "./memory/meter.ts";
export * from "./memory/paged.ts";
export * from "./memory/scratch-file.ts";
// `native`, `liveHandle` and `adoptList` are for rooms that call the addon themselves.
export {
  forkSupport,
  loadNative,
  type Metered,
  type NativeInfo,
  native,
  type ProgramText,
} from "./native.ts";
export * from "./numel.ts";
export * from "./operator-trace.ts";
export { emptyLike, fullLike, onesLike, zerosLike } from "./ops.generated.ts";
export * as ops from "./ops.ts";
export { type Binding, bindThread } from "./processors.ts";
export * from "./programs.ts";
export * from "./ref.ts";
export { hold, keep, liveTensors, OpenScope, scope, scopeUnlessAsync } from "./scope.ts";
export * from "./summary/buckets.ts";
export * from "./summary/statistics.ts";
export * from "./system.ts";
export { adoptList, liveHandle, Tensor } from "./tensor.ts";
