import { tensor } from "./create.ts";
import { bytesIn, type DType, viewFor } from "./dtype.ts";
import { frame, native } from "./native.ts";
import { numelOf } from "./numel.ts";
import { hold } from "./scope.ts";
import { adopt, type Tensor } from "./tensor.ts";

/**
 * A tensor on its way to another thread. It is plain data for a message; the bytes stay where they are. The receiver attaches
 * it once. It carries no autograd graph: the attached tensor does not require grad.
 */
export interface TensorRef {
  readonly kind: "tensor-ref";
  readonly id: number;
  readonly generation: number;
  readonly dtype: DType;
  readonly shape: readonly number[];
  /** The owner, see {@link RefOptions}; empty if there is none. */
  readonly owner: string;
  /** Set if the receiver's process shares memory with this one, in a run where not all processes do. */
  readonly isNear?: true;
}

/** Options of a ref. */
export interface RefOptions {
  /** The actor's incarnation that owns the ref, by the name given to `releaseRefsOf`. */
  readonly owner?: string;
  /** Set if the receiver's process shares memory with this one, in a run where not all processes do. */
  readonly isNear?: true;
}

const kinds = { move: 0, share: 1 } as const;

/** Moves a tensor: the sender's handle is disposed at once. @throws {TroupeError} `TENSOR_SHARED` while others read it */
export function moveRef(tensor: Tensor, options: RefOptions = {}): TensorRef {
  const ref = makeRef(tensor, kinds.move, options);
  tensor.forget(); // the table has released the handle
  return ref;
}

/**
 * Shares a tensor with another thread for reading. Until that thread has disposed its tensor, or the ref is released, writing
 * through either handle, or through views made after this, throws `TENSOR_SHARED` or `TENSOR_READ_ONLY`. Make one ref for
 * each receiver.
 */
export function shareRef(tensor: Tensor, options: RefOptions = {}): TensorRef {
  return makeRef(tensor, kinds.share, options);
}

/**
 * Attaches a moved or shared tensor to this thread, which consumes the ref. @throws {TroupeError} `TENSOR_REF_GONE` the
 * second time
 */
export function attach(ref: TensorRef): Tensor {
  return adopt(native().attachRef(ref.id, ref.generation));
}

/** Drops a ref that will not be attached. @returns false if it was attached or released before */
export function releaseRef(ref: TensorRef): boolean {
  return native().releaseRef(ref.id, ref.generation);
}

/** Drops every ref of an owner that has ended, in this process and on its way to others. @returns how many */
export function releaseRefsOf(owner: string): number {
  return native().releaseRefsOf(owner);
}

/** A ref as it travels to another process. Plain data. */
export interface ExportedTensor extends Omit<TensorRef, "id" | "generation" | "isNear"> {
  readonly exported: Readonly<Record<string, unknown>>;
}

/**
 * Exports a ref for another process, which consumes it. A tensor of {@link emptyShared} is not copied, any other is, once.
 * The sender of a shared tensor may write again when the receiver has disposed it or the receiver's process has ended. Until
 * it is imported, {@link releaseRef} with the original ref drops it.
 * @throws {TroupeError} `TENSOR_REF_GONE`, `SHARED_MEMORY_FULL`
 */
export function exportRef({ kind, id, generation, dtype, shape, owner }: TensorRef): ExportedTensor {
  return { kind, dtype, shape, owner, exported: native().exportRef(id, generation) };
}

/** Imports a ref from another process, once. @throws {TroupeError} `TENSOR_REF_GONE` the second time */
export function importRef({ kind, dtype, shape, owner, exported }: ExportedTensor): TensorRef {
  const id = native().importRef(exported);
  return { kind, id, generation: frame[0] ?? 0, dtype, shape, owner };
}

/** A tensor as it travels to a process that shares no memory. Plain data. */
export interface PackedTensor {
  readonly dtype: DType;
  readonly shape: readonly number[];
  readonly owner: string;
  /** Its elements in row-major order, in this machine's byte order. */
  readonly bytes: Uint8Array;
}

/**
 * Packs a ref as a copy of its elements, which consumes it. The sender of a shared tensor may write again at once.
 * @throws {TroupeError} `TENSOR_REF_GONE`
 */
export function packRef(ref: TensorRef): PackedTensor {
  const { dtype, shape, owner } = ref;
  const attached = hold(() => attach(ref));
  const bytes = bytesIn(attached.toTypedArray());
  attached.dispose();
  return { dtype, shape, owner, bytes };
}

/** Unpacks a tensor into memory of this process. */
export function unpackRef({ dtype, shape, owner, bytes }: PackedTensor): TensorRef {
  const { buffer } = new Uint8Array(bytes); // aligned, unlike in the message
  const elements = viewFor(dtype, buffer, 0, numelOf(shape));
  return moveRef(
    hold(() => tensor(elements, { dtype, shape })),
    { owner },
  );
}

/** Returns the number of refs in this process that were made and not yet attached or released. */
export function liveRefs(): number {
  return native().liveRefs();
}

function makeRef(tensor: Tensor, kind: number, options: RefOptions): TensorRef {
  const { dtype, shape } = tensor;
  const { owner = "", isNear } = options;
  const id = native().makeRef(tensor.handle, kind, owner);
  return {
    kind: "tensor-ref",
    id,
    generation: frame[0] ?? 0,
    dtype,
    shape,
    owner,
    ...(isNear && { isNear }),
  };
}
