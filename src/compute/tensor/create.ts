import { TroupeError } from "../../errors/index.ts";
import { type Device, onDevice } from "./device.ts";
import { type DType, dtypeCode, dtypeOfArray, type TypedArray } from "./dtype.ts";
import { frame, native } from "./native.ts";
import { numelOf } from "./numel.ts";
import * as ops from "./ops.generated.ts";
import { hold } from "./scope.ts";
import { adopt, type Tensor } from "./tensor.ts";

/** Nested arrays of numbers; all rows of one depth have the same length. */
export type NestedNumbers = readonly (number | NestedNumbers)[];

/** The shape of a new tensor; one number means 1-D. */
export type Shape = number | readonly number[];

/** The dtype and the device of a new tensor. */
export interface CreateOptions {
  /** Default: float32. */
  readonly dtype?: DType;
  /** Device of its memory; by default this thread's device, which is the host unless it has entered another. */
  readonly device?: Device;
}

/**
 * Makes a tensor from the given elements, which are copied.
 * @param data - a typed array (SharedArrayBuffer-backed ones too), a number (0-dim), or nested arrays of numbers
 * @param options - `dtype`: the array's own by default, float32 for plain numbers; a Uint16Array holds raw bits and needs
 *   `dtype`: bfloat16, float16 or int16. `shape`: that of the nesting, or 1-D, by default
 * @throws {TroupeError} `TENSOR_ARGUMENT` when rows differ in length or the shape does not fit the number of elements
 */
export function tensor(
  data: TypedArray | number | NestedNumbers,
  options: CreateOptions & { readonly shape?: readonly number[] } = {},
): Tensor {
  const { dtype, shape, device } = options;
  if (ArrayBuffer.isView(data)) {
    const own = dtype ?? dtypeOfArray(data) ?? "float32";
    return onDevice(device, () => fromArray(data, own, shape ?? [data.length]));
  }
  const numbers: number[] = [];
  const nested = collect(data, numbers);
  return onDevice(device, () => fromArray(Float64Array.from(numbers), dtype ?? "float32", shape ?? nested));
}

/** Makes a tensor of uninitialized memory. */
export function empty(shape: Shape, options: CreateOptions = {}): Tensor {
  return onDevice(options.device, () => ops.empty(sizes(shape), options.dtype ?? "float32"));
}

/** Makes a tensor of zeros. */
export function zeros(shape: Shape, options: CreateOptions = {}): Tensor {
  return onDevice(options.device, () => ops.zeros(sizes(shape), options.dtype ?? "float32"));
}

/**
 * Makes a tensor of uninitialized memory that can be sent to other processes of this host without a copy. It is ordinary
 * memory if there are no other processes, and device memory on a device. The ledger counts it once per host, in the process
 * that made it or that it was moved to.
 * @throws {TroupeError} `SHARED_MEMORY_FULL`
 */
export function emptyShared(shape: Shape, options: CreateOptions = {}): Tensor {
  if (!native().inSharedFolder()) return empty(shape, options);
  const dims = sizes(shape);
  return onDevice(options.device, () => {
    frame.set(dims);
    return adopt(native().emptyShared(dtypeCode(options.dtype ?? "float32"), dims.length));
  });
}

/**
 * Makes a flat float32 tensor like {@link emptyShared} on the host, in another thread, because the system clears new pages. It
 * belongs to no scope: the caller must `dispose()` it. It is charged to this thread's present tag.
 * @param numel - number of elements
 * @throws {TroupeError} `SHARED_MEMORY_FULL`
 */
export async function emptySharedOffThread(numel: number): Promise<Tensor> {
  const handle = await native().emptySharedOffThread(dtypeCode("float32"), numel);
  return hold(() => adopt(handle));
}

/** Makes a tensor of ones. */
export function ones(shape: Shape, options: CreateOptions = {}): Tensor {
  return onDevice(options.device, () => ops.ones(sizes(shape), options.dtype ?? "float32"));
}

/** Makes a tensor with all elements equal to `value`. */
export function full(shape: Shape, value: number, options: CreateOptions = {}): Tensor {
  return onDevice(options.device, () => ops.full(sizes(shape), value, options.dtype ?? "float32"));
}

/** Makes the 1-D tensor start, start + step, … below end. Default dtype: int64. */
export function arange(
  end: number,
  options: CreateOptions & { readonly start?: number; readonly step?: number } = {},
): Tensor {
  const { start = 0, step = 1, dtype = "int64" } = options;
  return onDevice(options.device, () => ops.arange(start, end, step, dtype));
}

const sizes = (shape: Shape): readonly number[] => (typeof shape === "number" ? [shape] : shape);

function fromArray(data: TypedArray, dtype: DType, shape: readonly number[]): Tensor {
  const numel = numelOf(shape);
  if (numel !== data.length)
    throw new TroupeError("TENSOR_ARGUMENT", {
      where: "tensor",
      expected: `${numel} elements for shape [${shape.join(",")}]`,
      got: `${data.length}`,
      fields: { shape: [...shape], length: data.length },
    });
  frame.set(shape);
  return adopt(native().tensor(data, dtypeCode(dtype), shape.length));
}

/** Appends the numbers in row-major order. @returns the shape of the nesting */
function collect(data: number | NestedNumbers, numbers: number[]): number[] {
  if (typeof data === "number") {
    numbers.push(data);
    return [];
  }
  const shapes = data.map((part) => collect(part, numbers));
  const first = shapes[0] ?? [];
  if (shapes.some((shape) => shape.join() !== first.join()))
    throw new TroupeError("TENSOR_ARGUMENT", {
      where: "tensor",
      expected: "rows of one shape",
      got: `[${shapes.map((shape) => `[${shape.join(",")}]`).join(", ")}]`,
    });
  return [data.length, ...first];
}

/**
 * A file's bytes as a 1-D tensor, without reading them: pages come in when touched and go under memory pressure. Read-only:
 * in-place operators throw `TENSOR_READ_ONLY`. The file must not shrink while the tensor, or a view of it, lives.
 * @param numel - number of elements from `offsetBytes` on
 * @throws {TroupeError} `FILE_UNREADABLE`, or `FILE_TOO_SHORT` when the file ends before the last element
 */
export function mapFile(
  path: string,
  dtype: DType,
  numel: number,
  options: { readonly offsetBytes?: number } = {},
): Tensor {
  const offsetBytes = options.offsetBytes ?? 0;
  if (!Number.isSafeInteger(numel) || !Number.isSafeInteger(offsetBytes))
    throw new TroupeError("TENSOR_ARGUMENT", {
      where: "mapFile",
      expected: "whole numbers",
      got: `numel ${numel}, offsetBytes ${offsetBytes}`,
    });
  return adopt(native().mapFile(path, dtypeCode(dtype), numel, offsetBytes));
}
