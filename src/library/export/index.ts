/** Writes models for inference by other programs: ONNX. */
export { type Exported, type ExportOptions, exportKinds, exportModel } from "./export-model.ts";
export { type OnnxOptions, writeOnnx } from "./onnx/export-onnx.ts";
export type { ParameterReader } from "./onnx/types.ts";
export type { ExportInput, ForwardSpec } from "./trace-forward.ts";
