import { numelOf } from "../../compute/tensor/index.ts";
import { TroupeError } from "../../errors/index.ts";
import { type Box, liesIn } from "../../library/checkpoint/index.ts";

/** The box of a complete tensor. */
export function fullBox(shape: readonly number[]): Box {
  return { offset: shape.map(() => 0), shape };
}

/** Whether two boxes of one tensor share an element. */
export function overlap(a: Box, b: Box): boolean {
  return a.offset.every((begin, dim) => {
    const other = b.offset[dim] as number;
    return begin < other + (b.shape[dim] as number) && other < begin + (a.shape[dim] as number);
  });
}

/** Refuses a box that is not within its tensor. @throws {TroupeError} `CHECKPOINT_SLICE` */
export function checkSlice(name: string, shape: readonly number[], slice: Box): void {
  const { offset, shape: extent } = slice;
  if ([...offset, ...extent].every(isCount) && liesIn(slice, shape)) return;
  throw new TroupeError("CHECKPOINT_SLICE", {
    where: "checkpoint service",
    expected: `a slice within ${JSON.stringify(name)} [${shape}]`,
    got: `[${extent}] at [${offset}]`,
    hint: "one number for each dim",
    fields: { tensor: name, shape, slice },
  });
}

/** Copies the bytes of a box, row-major, into its tensor as they arrive, in parts of any length. */
export class SliceWriter {
  readonly #target: Uint8Array;
  /** Bytes of a run that is contiguous in both, and the start of each run in the tensor. */
  readonly #runBytes: number;
  readonly #runBegin: (run: number) => number;
  readonly #sizeBytes: number;
  #written = 0;

  /** @param target - the bytes of the complete tensor of `shape` */
  constructor(target: Uint8Array, shape: readonly number[], slice: Box, elementBytes: number) {
    const { numRuns, runElements, runBegin } = runsOf(shape, slice);
    this.#target = target;
    this.#runBytes = runElements * elementBytes;
    this.#runBegin = (run) => runBegin(run) * elementBytes;
    this.#sizeBytes = numRuns * this.#runBytes;
  }

  /** Bytes that have not arrived. */
  get missingBytes(): number {
    return this.#sizeBytes - this.#written;
  }

  /** Appends the next bytes, at most as many as are missing. */
  append(bytes: Uint8Array): void {
    if (bytes.length > this.missingBytes) throw new RangeError("more bytes than the slice has");
    let taken = 0;
    while (taken < bytes.length) {
      const within = this.#written % this.#runBytes;
      const length = Math.min(bytes.length - taken, this.#runBytes - within);
      const begin = this.#runBegin((this.#written - within) / this.#runBytes) + within;
      this.#target.set(bytes.subarray(taken, taken + length), begin);
      taken += length;
      this.#written += length;
    }
  }
}

/** The contiguous runs of a box in its tensor: one for each index of the outer dims. */
function runsOf(shape: readonly number[], { offset, shape: extent }: Box) {
  let inner = shape.length;
  let runElements = 1;
  // Inner dims that the box spans completely are contiguous with the next outer dim.
  while (inner > 0) {
    inner -= 1;
    runElements *= extent[inner] as number;
    if (extent[inner] !== shape[inner]) break;
  }
  const strides = shape.map((_, dim) => numelOf(shape.slice(dim + 1)));
  const base = offset.reduce((sum, begin, dim) => sum + begin * (strides[dim] as number), 0);
  const runBegin = (run: number) => {
    let rest = run;
    let begin = base;
    for (let dim = inner - 1; dim >= 0; dim--) {
      const size = extent[dim] as number;
      begin += (rest % size) * (strides[dim] as number);
      rest = Math.floor(rest / size);
    }
    return begin;
  };
  return { numRuns: numelOf(extent.slice(0, inner)), runElements, runBegin };
}

const isCount = (value: number): boolean => Number.isSafeInteger(value) && value >= 0;
