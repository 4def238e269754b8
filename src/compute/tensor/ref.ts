import { tensor } from "./create.ts";
import { type DType, viewFor } from "./dtype.ts";
import { frame, native } from "./native.ts";
import { numelOf } from "./numel.ts";
import { hold } from "./scope.ts";
import { adopt, type Tensor } from "./tensor.ts";

/**
 * A tensor on its way to another thread: plain data for a message; the bytes stay where they are. Attached once, by the
 * receiver. It carries no autograd graph: what arrives is detached and does not require grad.
 */
export interface TensorRef {
  readonly kind: "tensor-ref";
  readonly id: number;
  readonly generation: number;
  readonly dtype: DType;
  readonly shape: readonly number[];
  /** Who answers for it; empty where nobody does. */
  readonly owner: string;
  /** Said where not all processes of a run share memory: the receiver's does with this one. */
  readonly isNear?: true;
}

/** The actor that holds a ref, by the name of its incarnation: its refs are released when it ends. */
export interface RefOptions {
  readonly owner?: string;
  /** Said where not all processes of a run share memory: the receiver's does with this one. */
  readonly isNear?: true;
}

const kinds = { move: 0, share: 1 } as const;

/** Gives a tensor away: the sender's handle is gone at once. @throws {TroupeError} `TENSOR_SHARED` while others read it */
export function moveRef(tensor: Tensor, options: RefOptions = {}): TensorRef {
  const ref = makeRef(tensor, kinds.move, options);
  tensor.forget(); // the table has released the handle
  return ref;
}

/**
 * Lets another thread read a tensor. Until it has disposed what it attached (or the ref was released), writing through
 * either handle, or through views made after this, throws `TENSOR_SHARED` or `TENSOR_READ_ONLY`. One ref for each receiver.
 */
export function shareRef(tensor: Tensor, options: RefOptions = {}): TensorRef {
  return makeRef(tensor, kinds.share, options);
}

/** Takes a moved or shared tensor into this thread. Consumes the ref. @throws {TroupeError} `TENSOR_REF_GONE` the second time */
export function attach(ref: TensorRef): Tensor {
  return adopt(native().attachRef(ref.id, ref.generation));
}

/** Drops a ref that nobody will attach. @returns false when it was attached or released before */
export function releaseRef(ref: TensorRef): boolean {
  return native().releaseRef(ref.id, ref.generation);
}

/** Drops every ref of an owner that died, in the whole process, and between processes. @returns how many */
export function releaseRefsOf(owner: string): number {
  return native().releaseRefsOf(owner);
}

/** A ref as it travels to another process: plain data. */
export interface ExportedTensor extends Omit<TensorRef, "id" | "generation" | "isNear"> {
  readonly exported: Readonly<Record<string, unknown>>;
}

/**
 * Makes a ref fit to leave its process, and consumes it: a tensor of {@link emptyShared} is not copied, any other is, once.
 * Who has shared a tensor has its rights back when the receiver, in whatever process, has disposed it, or that process has
 * ended. Until it is taken in, {@link releaseRef} with the ref as it was gives it up.
 * @throws {TroupeError} `TENSOR_REF_GONE`, `SHARED_MEMORY_FULL`
 */
export function exportRef({ kind, id, generation, dtype, shape, owner }: TensorRef): ExportedTensor {
  return { kind, dtype, shape, owner, exported: native().exportRef(id, generation) };
}

/** Takes a ref from another process in, once. @throws {TroupeError} `TENSOR_REF_GONE` the second time */
export function importRef({ kind, dtype, shape, owner, exported }: ExportedTensor): TensorRef {
  const id = native().importRef(exported);
  return { kind, id, generation: frame[0] ?? 0, dtype, shape, owner };
}

/** A tensor as it travels to a process that shares no memory: plain data. */
export interface PackedTensor {
  readonly dtype: DType;
  readonly shape: readonly number[];
  readonly owner: string;
  /** Its elements, the last dim fastest, in this machine's byte order. */
  readonly bytes: Uint8Array;
}

/**
 * Makes a ref fit to leave its process as a copy of its elements, and consumes it. A tensor that was shared is the sender's
 * again at once.
 * @throws {TroupeError} `TENSOR_REF_GONE`
 */
export function packRef(ref: TensorRef): PackedTensor {
  const { dtype, shape, owner } = ref;
  const attached = hold(() => attach(ref));
  const { buffer, byteOffset, byteLength } = attached.toTypedArray();
  attached.dispose();
  return { dtype, shape, owner, bytes: new Uint8Array(buffer, byteOffset, byteLength) };
}

/** Takes such a tensor in, into memory of this process. */
export function unpackRef({ dtype, shape, owner, bytes }: PackedTensor): TensorRef {
  const { buffer } = new Uint8Array(bytes); // aligned: in the message it lay anywhere
  const elements = viewFor(dtype, buffer, 0, numelOf(shape));
  return moveRef(
    hold(() => tensor(elements, { dtype, shape })),
    { owner },
  );
}

/** Refs under way in the whole process: made, not yet attached or released. */
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
