import { describe, expect, test } from "vitest";
import {
  defineInitializer,
  Embedding,
  fromValues,
  type Initializer,
  initializeSlice,
  loadInitializers,
  normal,
} from "../../src/compute/nn/index.ts";
import { empty, scope } from "../../src/compute/tensor/index.ts";

const [numRows, width] = [6, 4];
const counted = defineInitializer(import.meta.url, "counted rows", ({ begin, end }) =>
  Array.from({ length: end - begin }, (_, index) => 1 + begin + index),
);

/** Initial values of a part of a table's weight; of all that a split has left, unless told. */
const valuesOf = ({ weight }: Embedding, begin = 0, numel = weight.numel) =>
  scope(() => {
    const slice = empty([numel]);
    const { shape, split, init } = weight;
    initializeSlice(slice, { name: "w", shape, init, ...(split && { split }) }, 5, begin);
    return Array.from(slice.toTypedArray(), Number);
  });

describe("the padding row of an embedding", () => {
  test.each<[string, Initializer]>([
    ["drawn", normal(0, 1)],
    ["given", fromValues(Array.from({ length: numRows * width }, (_, index) => 1 + index))],
    ["computed by an initializer of one's own", counted(undefined)],
  ])("begins as zeros, and changes no other value: %s", (_, init) => {
    const expected = valuesOf(new Embedding(numRows, width, init)).map((each, index) =>
      Math.floor(index / width) === 2 ? 0 : each,
    );
    const table = () => new Embedding(numRows, width, init, 2);
    expect(valuesOf(table())).toEqual(expected);
    const pieces = [0, 3, 9, 10, 17].map((begin, index, all) =>
      valuesOf(table(), begin, (all[index + 1] ?? numRows * width) - begin),
    );
    expect(pieces.flat()).toEqual(expected);
    const halves = [0, 1].flatMap((index) => {
      const half = table();
      half.weight.cut({ dim: 0, index, count: 2 });
      return valuesOf(half);
    });
    expect(halves).toEqual(expected);
  });

  test("loads an initializer of one's own, of which the other rows are, into other threads", async () => {
    const { href } = new URL("../fixtures/jobs/own.ts", import.meta.url);
    const foreign = { ...counted(undefined), module: href };
    const { weight } = new Embedding(numRows, width, foreign, 2);
    await expect(loadInitializers([structuredClone(weight.init)])).rejects.toThrow(
      "[initializer counted rows]",
    );
  });

  test.each([-1, numRows, 0.5, Number.NaN])("is refused where it is none of the rows: %d", (row) => {
    expect(() => new Embedding(numRows, width, normal(0, 1), row)).toThrow(
      `[Embedding] expected a padding row from 0 to 5, got ${row}`,
    );
  });
});
