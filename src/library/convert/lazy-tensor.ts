import { type SafetensorsDType, tensorSizeBytes } from "../checkpoint/index.ts";
import { convertError } from "./convert-error.ts";

/** A tensor whose bytes, row-major and little-endian, are read on demand. */
export interface LazyTensor {
  readonly dtype: SafetensorsDType;
  readonly shape: readonly number[];
  read(): Promise<Uint8Array>;
}

/** Transposes a matrix; a vector stays the same. */
export function transposed(tensor: LazyTensor): LazyTensor {
  const [rows = 1, columns] = tensor.shape;
  if (columns === undefined) return tensor;
  const read = async () => {
    const from = elements(tensor.dtype, await tensor.read());
    const to = elements(tensor.dtype, new Uint8Array(from.byteLength));
    for (let row = 0; row < rows; row++) {
      for (let column = 0; column < columns; column++)
        to[column * rows + row] = from[row * columns + column] as never;
    }
    return new Uint8Array(to.buffer);
  };
  return { dtype: tensor.dtype, shape: [columns, rows], read };
}

/** Concatenates tensors along one dim. @throws {TroupeError} `CONVERT` if they differ in dtype or in another dim */
export function joined(parts: readonly LazyTensor[], dim: 0 | 1, where: string): LazyTensor {
  const [first] = parts as [LazyTensor];
  if (parts.length === 1) return first;
  const others = (shape: readonly number[]) => shape.toSpliced(dim, 1).join();
  for (const { dtype, shape } of parts) {
    if (dtype === first.dtype && shape.length > dim && others(shape) === others(first.shape)) continue;
    const facts = `${first.dtype}[${first.shape}] and ${dtype}[${shape}]`;
    throw convertError(
      `parts of ${where} that fit side by side along dim ${dim}`,
      facts,
      "are they of one checkpoint?",
      { where, dim },
    );
  }
  const sizes = parts.map(({ shape }) => shape[dim] ?? 0);
  const shape = first.shape.with(
    dim,
    sizes.reduce((sum, size) => sum + size, 0),
  );
  const read = async () => {
    const whole = new Uint8Array(tensorSizeBytes(first.dtype, shape) as number);
    let at = 0;
    for (const part of parts) {
      copyRuns(await part.read(), part, whole, { dtype: first.dtype, shape }, dim, at);
      at += part.shape[dim] ?? 0;
    }
    return whole;
  };
  return { dtype: first.dtype, shape, read };
}

/** Takes indices `begin` to before `end` of one dim. */
export function cut(tensor: LazyTensor, dim: 0 | 1, begin: number, end: number): LazyTensor {
  const shape = tensor.shape.with(dim, end - begin);
  const read = async () => {
    const part = new Uint8Array(tensorSizeBytes(tensor.dtype, shape) as number);
    copyRuns(await tensor.read(), tensor, part, { dtype: tensor.dtype, shape }, dim, -begin);
    return part;
  };
  return { dtype: tensor.dtype, shape, read };
}

/** Reorders rows: row i of the result is row `order[i]`; rows beyond the tensor are zeros. */
export function withRows(tensor: LazyTensor, order: readonly number[]): LazyTensor {
  const [numRows = 0] = tensor.shape;
  const shape = tensor.shape.with(0, order.length);
  const read = async () => {
    const from = await tensor.read();
    const rowBytes = numRows === 0 ? 0 : from.length / numRows;
    const to = new Uint8Array(rowBytes * order.length);
    order.forEach((row, index) => {
      if (row < numRows) to.set(from.subarray(row * rowBytes, (row + 1) * rowBytes), index * rowBytes);
    });
    return to;
  };
  return { dtype: tensor.dtype, shape, read };
}

/** Copies the overlap of two tensors when `from` is placed in `to` at `offset` along `dim`. */
function copyRuns(
  from: Uint8Array,
  source: Pick<LazyTensor, "dtype" | "shape">,
  to: Uint8Array,
  target: Pick<LazyTensor, "dtype" | "shape">,
  dim: 0 | 1,
  offset: number,
): void {
  const numOuter = dim === 0 ? 1 : (source.shape[0] ?? 0);
  const [sourceSize = 0, targetSize = 0] = [source.shape[dim], target.shape[dim]];
  if (numOuter === 0 || sourceSize === 0) return;
  const placeBytes = from.length / numOuter / sourceSize;
  const begin = Math.max(0, -offset);
  const end = Math.min(sourceSize, targetSize - offset);
  for (let outer = 0; outer < numOuter; outer++) {
    const run = from.subarray(
      (outer * sourceSize + begin) * placeBytes,
      (outer * sourceSize + end) * placeBytes,
    );
    to.set(run, (outer * targetSize + begin + offset) * placeBytes);
  }
}

/** The bits of a tensor, one array element each. @throws {TroupeError} `CONVERT` for dtypes below a byte */
function elements(dtype: SafetensorsDType, bytes: Uint8Array) {
  const arrays = { 1: Uint8Array, 2: Uint16Array, 4: Uint32Array, 8: BigUint64Array };
  const array = arrays[tensorSizeBytes(dtype, [1]) as keyof typeof arrays];
  if (array === undefined)
    throw convertError("a dtype of at least one byte", dtype, "leave that tensor unchanged", { dtype });
  const aligned = bytes.byteOffset % array.BYTES_PER_ELEMENT === 0 ? bytes : bytes.slice();
  return new array(
    aligned.buffer as ArrayBuffer,
    aligned.byteOffset,
    aligned.length / array.BYTES_PER_ELEMENT,
  );
}
