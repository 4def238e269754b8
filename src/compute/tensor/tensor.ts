import { TroupeError } from "../../errors/index.ts";
import { type BackwardOptions, backward } from "./backward.ts";
import { type Device, deviceNumber } from "./device.ts";
import { arrayFor, type DType, dtypeOfCode, type TypedArray, viewFor } from "./dtype.ts";
import { frame, handleOf } from "./frame.ts";
import { TensorHandle } from "./handle.ts";
import { native } from "./native.ts";
import { numelOf } from "./numel.ts";
import { register } from "./scope.ts";

interface Facts {
  readonly shape: readonly number[];
  readonly dtype: DType;
}

/**
 * An n-dimensional array in libtorch's memory. This object is a small handle. It belongs to the scope in which it was made
 * and is released with it, unless returned or kept; `using` and `dispose()` release it sooner. Using it afterwards throws
 * `TENSOR_DISPOSED`. The operators are methods with torch's names in camelCase; a trailing underscore means in place. They
 * throw `TENSOR_OP_FAILED` with the shapes and dtypes of their operands.
 */
export class Tensor extends TensorHandle {
  private facts: Facts | undefined = undefined;

  /** Sizes of the dims, frozen. */
  get shape(): readonly number[] {
    return this.read().shape;
  }

  get dtype(): DType {
    return this.read().dtype;
  }

  /** The device of its memory: "cpu", a device such as "cuda:0", or "meta" for a placeholder without memory. */
  get device(): Device | "meta" {
    return native().device(this.handle) as Device | "meta";
  }

  /**
   * Returns the tensor on a device: a copy, which autograd records, or a handle to the same memory if it is there already.
   * For a copy to the host, the thread waits for the values.
   * @throws {TroupeError} `DEVICE_UNAVAILABLE`
   */
  onto(device: Device): Tensor {
    return adopt(native().toDevice(this.handle, deviceNumber(device)));
  }

  /** Number of elements. */
  get numel(): number {
    return numelOf(this.shape);
  }

  /** Number of dims. */
  get ndim(): number {
    return this.shape.length;
  }

  /** Whether autograd records operations on it. */
  get requiresGrad(): boolean {
    return native().requiresGrad(this.handle);
  }

  /** Makes it a leaf of the autograd graph, or undoes that. Floating dtypes only. */
  requiresGrad_(flag = true): this {
    native().requiresGrad_(this.handle, flag);
    return this;
  }

  /** The gradient of a leaf, null before the first backward. Each read makes a new handle in the running scope. */
  get grad(): Tensor | null {
    const handle = native().gradOf(this.handle);
    return handle === 0 ? null : adopt(handle);
  }

  /** Sets the gradient that backward adds to, such as a view of a flat buffer; null removes it. */
  set grad(gradient: Tensor | null) {
    native().setGrad(this.handle, gradient === null ? 0 : liveHandle(gradient, "grad"));
  }

  /** Adds the gradients of this tensor to `.grad` of the leaves it was computed from. See {@link backward}. */
  backward(gradient?: Tensor, options?: Pick<BackwardOptions, "retainGraph">): void {
    backward(this, gradient, options);
  }

  /** Returns the one element as a number; int64 beyond 2^53 is rounded. */
  item(): number {
    return native().item(this.handle);
  }

  /** Copies the elements in row-major order. bfloat16 and float16 are raw bits; call `to("float32")` first for numbers. */
  toTypedArray(): TypedArray {
    const data = arrayFor(this.dtype, this.numel);
    native().toTypedArray(this.handle, data);
    return data;
  }

  /**
   * Copies the elements like {@link toTypedArray} into a buffer, shared or not, from `byteOffset` on, a multiple of the
   * element size.
   */
  copyInto(buffer: ArrayBufferLike, byteOffset: number): void {
    native().toTypedArray(this.handle, viewFor(this.dtype, buffer, byteOffset, this.numel));
  }

  /** Overwrites all elements, in row-major order, converting to this dtype. The array may be over a SharedArrayBuffer. */
  copyFrom(data: TypedArray): this {
    native().copyFrom(this.handle, data);
    return this;
  }

  /** Returns a description for logs: `Tensor float32[2,3]`. */
  override toString(): string {
    return this.disposed ? "Tensor (disposed)" : `Tensor ${this.dtype}[${this.shape.join(",")}]`;
  }

  private read(): Facts {
    if (this.facts === undefined || this.handle === 0) this.facts = readFacts(this.handle);
    return this.facts;
  }
}

/** Wraps a tensor that the addon has just made, and adds it to the running scope. */
export function adopt(handle: number): Tensor {
  return register(new Tensor(handle));
}

/** Adopts the result at an index of the frame. */
export function adoptAt(index: number): Tensor {
  return adopt(frame[index] ?? 0);
}

/** Adopts a list of results, whose handles begin at index 1 of the frame. */
export function adoptList(count: number): Tensor[] {
  return Array.from({ length: count }, (_, index) => adoptAt(index + 1));
}

/** Returns the handle of a tensor that must be alive, for native calls. @throws {TroupeError} `TENSOR_DISPOSED` */
export function liveHandle(tensor: Tensor, op: string): number {
  const handle = handleOf(tensor, op, "the operand");
  if (handle === 0)
    throw new TroupeError("TENSOR_DISPOSED", {
      where: op,
      expected: "a live tensor",
      got: "one that was disposed",
      fields: { op },
    });
  return handle;
}

function readFacts(handle: number): Facts {
  const dtype = dtypeOfCode(native().describe(handle));
  const ndim = frame[0] ?? 0;
  return { dtype, shape: Object.freeze(Array.from(frame.subarray(1, 1 + ndim))) };
}
