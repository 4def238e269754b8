/** Writes models for inference by other programs: ONNX. */
export { type Exported, type ExportOptions, exportKinds, exportModel } from "./export-model.ts";
export { type OnnxOptions, type WriteOptions, writeOnnx } from "./onnx/export-onnx.ts";
export type { ReadParameter } from "./read-from-memory.ts";
export type { ExportInput, ForwardSpec } from "./trace-forward.ts";
