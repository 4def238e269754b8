import type { SafetensorsDType } from "./safetensors-header.ts";

// biome-ignore format: a list
const spellings = {
  float32: "F32", float64: "F64", bfloat16: "BF16", float16: "F16", int64: "I64", int32: "I32",
  int16: "I16", int8: "I8", uint8: "U8", bool: "BOOL",
} as const satisfies Readonly<Record<string, SafetensorsDType>>;

/** Name of a dtype as tensors have it. */
export type TensorDTypeName = keyof typeof spellings;

/** Converts a tensor's dtype to safetensors' name. */
export function toSafetensorsDType(dtype: TensorDTypeName): SafetensorsDType {
  return spellings[dtype];
}
