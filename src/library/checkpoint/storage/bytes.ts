import { arrayFor, itemBytes, liveHandle, scope, Tensor } from "../../../compute/tensor/index.ts";

/** Elements `begin` to `begin + numel` of a contiguous tensor, in row-major order. */
export interface TensorRange {
  readonly tensor: Tensor;
  readonly begin: number;
  readonly numel: number;
}

/** Memory that is read or written in place: bytes, a contiguous tensor, or a range of one. */
export type Bytes = Uint8Array | Tensor | TensorRange;

/** The place of {@link Bytes} in memory, for native calls. */
export interface Place {
  /** A tensor's handle, or bytes. */
  readonly memory: number | Uint8Array;
  readonly offsetBytes: number;
  readonly sizeBytes: number;
}

/** Finds the place of bytes in memory. @throws {TroupeError} `TENSOR_DISPOSED` */
export function placeOf(bytes: Bytes): Place {
  if (bytes instanceof Uint8Array) return { memory: bytes, offsetBytes: 0, sizeBytes: bytes.length };
  const { tensor, begin, numel } = bytes instanceof Tensor ? whole(bytes) : bytes;
  const size = itemBytes(tensor.dtype);
  return { memory: liveHandle(tensor, "file"), offsetBytes: begin * size, sizeBytes: numel * size };
}

/** Number of bytes. */
export function sizeOf(bytes: Bytes): number {
  if (bytes instanceof Uint8Array) return bytes.length;
  const { tensor, numel } = bytes instanceof Tensor ? whole(bytes) : bytes;
  return numel * itemBytes(tensor.dtype);
}

/** Whether a value is {@link Bytes}, rather than a sequence of them. */
export function isBytes(value: unknown): value is Bytes {
  return (
    value instanceof Uint8Array ||
    value instanceof Tensor ||
    (typeof value === "object" && value !== null && "tensor" in value)
  );
}

/** Copies bytes into memory, `target` bytes after its start. */
export function layInto(bytes: Uint8Array, into: Bytes, target: number): void {
  if (into instanceof Uint8Array) {
    into.set(bytes, target);
    return;
  }
  const { tensor, begin } = into instanceof Tensor ? { tensor: into, begin: 0 } : into;
  const values = arrayFor(tensor.dtype, bytes.length / itemBytes(tensor.dtype));
  new Uint8Array(values.buffer).set(bytes);
  scope(
    () =>
      void tensor
        .view([-1])
        .narrow(0, begin + target / itemBytes(tensor.dtype), values.length)
        .copyFrom(values),
  );
}

function whole(tensor: Tensor): TensorRange {
  return { tensor, begin: 0, numel: tensor.numel };
}
