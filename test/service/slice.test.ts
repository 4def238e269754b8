import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { numelOf } from "../../src/compute/tensor/index.ts";
import type { Box } from "../../src/library/checkpoint/index.ts";
import { overlap, SliceWriter } from "../../src/tools/service/slice.ts";

/** A shape, a box in it, and cuts at which the bytes of the box arrive. */
const slices = fc
  .array(fc.tuple(fc.integer({ min: 1, max: 5 }), fc.nat(), fc.nat()), { maxLength: 4 })
  .map((dims) => {
    const shape = dims.map(([size]) => size);
    const offset = dims.map(([size, begin]) => begin % size);
    const extent = dims.map(([size, begin, end]) => 1 + (end % (size - (begin % size))));
    return { shape, box: { offset, shape: extent } as Box };
  });

/** Every index of a shape, in row-major order. */
function indices(shape: readonly number[]): number[][] {
  return shape.reduce<number[][]>(
    (found, size) => found.flatMap((index) => Array.from({ length: size }, (_, at) => [...index, at])),
    [[]],
  );
}

const isIn = ({ offset, shape }: Box, index: readonly number[]) =>
  index.every((at, dim) => at >= offset[dim]! && at < offset[dim]! + shape[dim]!);

describe("a slice", () => {
  test("lands where it belongs, however its bytes are cut, and nowhere else", () => {
    fc.assert(
      fc.property(
        slices,
        fc.integer({ min: 1, max: 8 }),
        fc.infiniteStream(fc.integer({ min: 1, max: 7 })),
        ({ shape, box }, itemBytes, cuts) => {
          const bytes = Uint8Array.from(
            { length: numelOf(box.shape) * itemBytes },
            (_, index) => 1 + (index % 255),
          );
          const target = new Uint8Array(numelOf(shape) * itemBytes);
          const writer = new SliceWriter(target, shape, box, itemBytes);
          for (let at = 0; at < bytes.length; ) {
            const next = Math.min(bytes.length, at + (cuts.next().value as number));
            writer.append(bytes.subarray(at, next));
            at = next;
          }
          let next = 0;
          const expected = indices(shape).flatMap((index) =>
            Array.from({ length: itemBytes }, () => (isIn(box, index) ? (bytes[next++] as number) : 0)),
          );
          expect([...target]).toEqual(expected);
          expect(writer.missingBytes).toBe(0);
        },
      ),
      { seed: 7, numRuns: 300 },
    );
  });

  test("a slice overlaps another if they have an element in common", () => {
    fc.assert(
      fc.property(slices, slices, ({ shape, box }, { box: other }) => {
        fc.pre(other.offset.length === box.offset.length);
        const common = indices(shape).some((index) => isIn(box, index) && isIn(other, index));
        // Elements of the other one that lie outside this shape cannot be in the box.
        expect(overlap(box, other)).toBe(common);
      }),
      { seed: 8, numRuns: 300 },
    );
  });

  test("takes no more bytes than it has", () => {
    const writer = new SliceWriter(new Uint8Array(4), [4], { offset: [0], shape: [2] }, 1);
    expect(() => writer.append(new Uint8Array(3))).toThrow(RangeError);
  });
});
