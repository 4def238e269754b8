import { noGrad, scope, type Tensor } from "../../../compute/tensor/index.ts";
import { quantizeTo4, quantizeTo8 } from "./quantize.ts";

/** A type of GGUF tensors: blocks of some elements of a row. */
export interface GgufType {
  /** ggml's number of the type. */
  readonly code: number;
  /** Elements of a block, which lie in one row. */
  readonly blockSize: number;
  readonly blockBytes: number;
  /** Encodes a tensor, float32 and contiguous, whose rows divide into blocks. */
  encode(values: Tensor): Uint8Array;
}

/** Types of tensors, by ggml's names. @see https://github.com/ggml-org/ggml/blob/master/docs/gguf.md */
export const ggufTypes = {
  F32: { code: 0, blockSize: 1, blockBytes: 4, encode: (values) => bytesAs(values, "float32") },
  F16: { code: 1, blockSize: 1, blockBytes: 2, encode: (values) => bytesAs(values, "float16") },
  Q8_0: { code: 8, blockSize: 32, blockBytes: 34, encode: (values) => quantizeTo8(floatsOf(values)) },
  Q4_K: { code: 12, blockSize: 256, blockBytes: 144, encode: (values) => quantizeTo4(floatsOf(values)) },
} as const satisfies Readonly<Record<string, GgufType>>;

function bytesAs(values: Tensor, dtype: "float32" | "float16"): Uint8Array {
  return scope(() =>
    noGrad(() => {
      const { buffer, byteOffset, byteLength } = values.to(dtype).toTypedArray();
      return new Uint8Array(buffer, byteOffset, byteLength);
    }),
  );
}

function floatsOf(values: Tensor): Float32Array {
  return values.toTypedArray() as Float32Array;
}
