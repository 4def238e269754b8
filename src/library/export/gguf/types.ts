import { noGrad, ops, scope, type Tensor } from "../../../compute/tensor/index.ts";

/** A type of GGUF tensors: blocks of some elements of a row. */
export interface GgufType {
  /** ggml's number of the type. */
  readonly code: number;
  /** Elements of a block, which lie in one row. */
  readonly blockSize: number;
  readonly blockBytes: number;
  /** Encodes a tensor, float32 and contiguous, whose rows divide into blocks. */
  readonly encode: (values: Tensor) => Uint8Array;
}

/** Types of tensors, by ggml's names. @see https://github.com/ggml-org/ggml/blob/master/docs/gguf.md */
export const ggufTypes = {
  F32: { code: 0, blockSize: 1, blockBytes: 4, encode: by((values) => values) },
  F16: { code: 1, blockSize: 1, blockBytes: 2, encode: by((values) => values.to("float16")) },
  Q8_0: { code: 8, blockSize: 32, blockBytes: 34, encode: by(ops.troupe.quantizeQ80) },
  Q4_K: { code: 12, blockSize: 256, blockBytes: 144, encode: by(ops.troupe.quantizeQ4K) },
} as const satisfies Readonly<Record<string, GgufType>>;

function by(change: (values: Tensor) => Tensor): GgufType["encode"] {
  return (values) =>
    scope(() =>
      noGrad(() => {
        const { buffer, byteOffset, byteLength } = change(values).toTypedArray();
        return new Uint8Array(buffer, byteOffset, byteLength);
      }),
    );
}
