import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { StateImage } from "../../src/actors/state/saving/state-image.ts";
import { cutShape, zeros } from "../../src/compute/nn/index.ts";
import { layoutBlock, type Piece, piecesIn, replicas, sliceOf } from "../../src/compute/parallel/index.ts";
import { arange, hold, scope, type Tensor } from "../../src/compute/tensor/index.ts";
import { liveTensors, memory } from "../../src/entries/tensor.ts";

/** How a parameter is spread: over ranks that split it, each one's share over ranks that split the block. */
interface Spread {
  readonly tp: number;
  readonly dp: number;
  readonly dim: number;
  readonly parts: number;
}

/** Before the parameter that is looked at, so that it begins anywhere in its block. */
const before = { name: "before", shape: [700], dtype: "float32", init: zeros } as const;

/** The pieces of the parameter on every rank, in the ranges that they have there. */
function piecesOf(
  shape: readonly number[],
  { tp, dp, dim, parts }: Spread,
): { piece: Piece; numel: number }[] {
  return Array.from({ length: tp }, (_, index) => {
    const { split, shape: held } = cutShape(shape, {
      dim,
      index,
      count: tp,
      parts: tp === 1 ? 1 : parts,
      pad: parts === 1,
    });
    const parameter = { ...before, name: "weight", shape: held, ...(tp === 1 ? {} : { split }) };
    const block = layoutBlock(0, "block", 3, [before, parameter], replicas(dp));
    return Array.from({ length: dp }, (_, member) => {
      const range = sliceOf(block, member);
      return piecesIn(block, range)
        .filter((piece) => piece.parameter.name === "weight")
        .map((piece) => ({ piece, numel: range.end - range.begin }));
    }).flat();
  }).flat();
}

/** The values of a piece of a parameter whose elements are 0, 1, 2, …; padding is -1. */
function valuesOf({ parameter, parameterBegin, numel }: Piece): number[] {
  const { shape, split } = parameter;
  if (split === undefined) return Array.from({ length: numel }, (_, index) => parameterBegin + index);
  const { dim, index, parts, logicalShape } = split;
  const inner = shape.slice(dim + 1).reduce((product, size) => product * size, 1);
  const [held = 0, whole = 0] = [(shape[dim] ?? 0) / parts, (logicalShape[dim] ?? 0) / parts];
  return Array.from({ length: numel }, (_, element) => {
    const at = parameterBegin + element;
    const outer = Math.floor(at / (held * inner));
    const position = index * held + (Math.floor(at / inner) % held);
    return position < whole ? (outer * whole + position) * inner + (at % inner) : -1;
  });
}

function addTo(image: StateImage, { piece, numel }: { piece: Piece; numel: number }): void {
  const values = hold(() => arange(numel, { dtype: "float32" }).fill_(-1));
  scope(() => {
    const floats = Float32Array.from(valuesOf(piece));
    for (const [index, value] of floats.entries()) values.narrow(0, piece.rangeBegin + index, 1).fill_(value);
  });
  image.add({ kind: "master", pieces: [piece], values });
}

function numbers(tensor: Tensor): number[] {
  const found = [...(tensor.toTypedArray() as Float32Array)];
  tensor.dispose();
  return found;
}

const spreads = fc.record({
  tp: fc.constantFrom(1, 2, 3),
  dp: fc.constantFrom(1, 2, 3),
  dim: fc.constantFrom(0, 1),
  parts: fc.constantFrom(1, 2),
});
const sizes = fc.tuple(fc.integer({ min: 3, max: 9 }), fc.integer({ min: 3, max: 9 }));

/** Parts of a fused parameter must divide; what is not fused may be padded. */
function shapeFor(spreads: readonly Spread[], [rows, columns]: readonly [number, number]): number[] {
  return spreads.some(({ parts }) => parts > 1) ? [12 * (rows - 2), 12 * (columns - 2)] : [rows, columns];
}

describe("the image of a state", () => {
  it("gives tensors completely or in ranges, whatever the layout and order of their parts", () => {
    fc.assert(
      fc.property(spreads, sizes, fc.infiniteStream(fc.nat()), (spread, size, order) => {
        const shape = shapeFor([spread], size);
        using image = new StateImage();
        const entry = { kind: "master", parameter: "weight", shape };
        const parts = piecesOf(shape, spread).toSorted(() => ((order.next().value ?? 0) % 2) - 0.5);
        for (const part of parts) {
          expect(image.has(entry)).toBe(false);
          addTo(image, part);
        }
        expect(image.has(entry)).toBe(true);
        const all: number[] = [];
        for (const { begin, values } of image.ranges(entry)) {
          expect(begin).toBe(all.length);
          all.push(...numbers(values));
        }
        expect(all).toEqual(Array.from({ length: shape[0]! * shape[1]! }, (_, index) => index));
      }),
      { seed: 11, numRuns: 60 },
    );
  });

  it("gives the pieces of any other layout, padding as zeros", () => {
    fc.assert(
      fc.property(spreads, spreads, sizes, (held, wanted, size) => {
        const shape = shapeFor([held, wanted], size);
        using image = new StateImage();
        for (const part of piecesOf(shape, held)) addTo(image, part);
        for (const { piece } of piecesOf(shape, wanted)) {
          const values = image.piece("master", piece);
          const expected = valuesOf(piece).map((value) => Math.max(0, value));
          expect(values && numbers(values).map((value) => Math.max(0, value))).toEqual(expected);
        }
      }),
      { seed: 12, numRuns: 60 },
    );
  });

  it("copies nothing where one part holds what is wanted, and gives memory back when the last of it is released", () => {
    const [part] = piecesOf([64, 6], { tp: 1, dp: 1, dim: 0, parts: 1 }) as [{ piece: Piece; numel: number }];
    const [tensors, bytes] = [liveTensors(), memory().totalBytes];
    using image = new StateImage();
    addTo(image, part);
    const held = memory().totalBytes;
    image.piece("master", part.piece)?.dispose();
    for (const { values } of image.ranges({ kind: "master", parameter: "weight", shape: [64, 6] }))
      values.dispose();
    expect(memory().totalBytes).toBe(held);
    image.release({ kind: "master", parameter: "weight", shape: [64, 6] });
    expect(image.sizeBytes).toBe(0);
    expect([liveTensors(), memory().totalBytes]).toEqual([tensors, bytes]);
  });

  it("a state image lacks the parts that have not arrived", () => {
    using image = new StateImage();
    const [part] = piecesOf([12, 6], { tp: 2, dp: 1, dim: 0, parts: 1 }) as [{ piece: Piece; numel: number }];
    addTo(image, part);
    expect(image.has({ kind: "master", parameter: "weight", shape: [12, 6] })).toBe(false);
    expect(image.has({ kind: "exp_avg", parameter: "weight", shape: [12, 6] })).toBe(false);
    const [, other] = piecesOf([12, 6], { tp: 3, dp: 1, dim: 0, parts: 1 });
    expect(other && image.piece("master", other.piece)).toBeUndefined();
  });
});
