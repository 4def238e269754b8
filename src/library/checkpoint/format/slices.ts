import { numelOf } from "../../../compute/tensor/index.ts";

/** A box in a tensor: `shape` elements along each dimension, from `offset`. */
export interface Box {
  readonly offset: readonly number[];
  readonly shape: readonly number[];
}

/** The most dimensions that a tensor may be cut along: each doubles the corners to check. */
const maxCutDims = 4;

/** Whether a box, possibly empty, is within a tensor of the given shape. */
export function liesIn({ offset, shape }: Box, whole: readonly number[]): boolean {
  return (
    offset.length === whole.length &&
    shape.length === whole.length &&
    whole.every((size, dim) => offset[dim]! + shape[dim]! <= size)
  );
}

/**
 * Whether boxes within a tensor contain each of its elements exactly once. A function on a grid that is zero outside is
 * determined by its differences along all dimensions; for a box these are non-zero only at its corners, where they
 * alternate between 1 and -1. So the boxes cover the tensor once if their corners add up to the tensor's corners.
 * @returns false also where more than four dimensions are cut
 */
export function coverOnce(boxes: readonly Box[], whole: readonly number[]): boolean {
  if (numelOf(whole) === 0) return boxes.length === 1 && numelOf(boxes[0]!.shape) === 0;
  // A dimension that every box spans does not matter.
  const dims = whole
    .map((_, dim) => dim)
    .filter((dim) => boxes.some(({ shape }) => shape[dim] !== whole[dim]));
  if (dims.length > maxCutDims) return false;
  const corners = new Map<string, number>();
  const add = ({ offset, shape }: Box, weight: number) => {
    for (let corner = 0; corner < 1 << dims.length; corner++) {
      let sign = weight;
      const at = dims.map((dim, bit) => {
        if ((corner & (1 << bit)) === 0) return offset[dim]!;
        sign = -sign;
        return offset[dim]! + shape[dim]!;
      });
      const key = at.join();
      const sum = (corners.get(key) ?? 0) + sign;
      if (sum === 0) corners.delete(key);
      else corners.set(key, sum);
    }
  };
  for (const box of boxes) add(box, 1);
  add({ offset: whole.map(() => 0), shape: whole }, -1);
  return corners.size === 0;
}

/**
 * The elements `begin` to `begin + numel` of a tensor in row-major order, as boxes in that order: at most two for each
 * dimension but the last, and one for that.
 */
export function boxesOfRun(whole: readonly number[], begin: number, numel: number): Box[] {
  const boxes: Box[] = [];
  const visit = (prefix: readonly number[], begin: number, numel: number) => {
    if (numel === 0) return;
    const dim = prefix.length;
    const inner = numelOf(whole.slice(dim + 1));
    const rest = whole.slice(dim + 1);
    const put = (first: number, count: number) => {
      boxes.push({
        offset: [...prefix, first, ...rest.map(() => 0)],
        shape: [...prefix.map(() => 1), count, ...rest],
      });
    };
    if (dim === whole.length) {
      boxes.push({ offset: prefix, shape: prefix.map(() => 1) });
      return;
    }
    const row = Math.floor(begin / inner);
    const within = begin - row * inner;
    if (within > 0 || numel < inner) {
      const taken = Math.min(numel, inner - within);
      visit([...prefix, row], within, taken);
      visit(prefix, begin + taken, numel - taken);
      return;
    }
    const rows = Math.floor(numel / inner);
    put(row, rows);
    visit(prefix, begin + rows * inner, numel - rows * inner);
  };
  visit([], begin, numel);
  return boxes;
}

/**
 * Finds the elements that two boxes share, as stretches that are contiguous in both.
 * @param each - called with the start of the stretch in `a` and in `b`, counted in elements of each in row-major order,
 * and its number of elements
 */
export function eachCommonStretch(
  a: Box,
  b: Box,
  each: (aBegin: number, bBegin: number, numel: number) => void,
): void {
  const rank = a.shape.length;
  const begin = a.offset.map((offset, dim) => Math.max(offset, b.offset[dim]!));
  const size = begin.map(
    (from, dim) => Math.min(a.offset[dim]! + a.shape[dim]!, b.offset[dim]! + b.shape[dim]!) - from,
  );
  if (size.some((count) => count <= 0)) return;
  // The trailing dimensions that both boxes span, and the dimension before them, form one stretch.
  let outer = rank;
  let numel = 1;
  while (outer > 0) {
    outer -= 1;
    numel *= size[outer]!;
    if (size[outer] !== a.shape[outer] || size[outer] !== b.shape[outer]) break;
  }
  const aStrides = stridesOf(a.shape);
  const bStrides = stridesOf(b.shape);
  const place = (box: Box, strides: readonly number[]) =>
    begin.reduce((sum, from, dim) => sum + (from - box.offset[dim]!) * strides[dim]!, 0);
  const walk = (dim: number, aBegin: number, bBegin: number) => {
    if (dim >= outer) {
      each(aBegin, bBegin, numel);
      return;
    }
    for (let i = 0; i < size[dim]!; i++)
      walk(dim + 1, aBegin + i * aStrides[dim]!, bBegin + i * bStrides[dim]!);
  };
  walk(0, place(a, aStrides), place(b, bStrides));
}

function stridesOf(shape: readonly number[]): number[] {
  const strides = shape.map(() => 1);
  for (let dim = shape.length - 2; dim >= 0; dim--) strides[dim] = strides[dim + 1]! * shape[dim + 1]!;
  return strides;
}
