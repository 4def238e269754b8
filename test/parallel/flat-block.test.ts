import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ExpertMLP, MixtureOfExperts, ones } from "../../src/compute/nn/index.ts";
import {
  cutExperts,
  holdersOf,
  layoutBlock,
  Mesh,
  PARAMETER_ALIGNMENT,
  piecesIn,
  planBlocks,
  replicas,
  SLICE_ALIGNMENT,
  sliceOf,
} from "../../src/compute/parallel/index.ts";

const spec = (name: string, shape: readonly number[]) =>
  ({ name, shape, dtype: "float32", init: ones }) as const;
const anyShapes = fc.array(fc.array(fc.integer({ min: 0, max: 40 }), { maxLength: 3 }), { maxLength: 8 });
const anyRanks = fc.integer({ min: 1, max: 9 });

describe("layoutBlock", () => {
  it("lays parameters out in order, aligned, without overlap, within the padded buffer", () => {
    fc.assert(
      fc.property(anyShapes, anyRanks, (shapes, numRanks) => {
        const block = layoutBlock(
          0,
          "b",
          3,
          shapes.map((shape, index) => spec(`p${index}`, shape)),
          replicas(numRanks),
        );
        let end = 0;
        for (const parameter of block.parameters) {
          expect(parameter.offset % PARAMETER_ALIGNMENT).toBe(0);
          expect(parameter.offset).toBeGreaterThanOrEqual(end);
          end = parameter.offset + parameter.numel;
        }
        expect(block.numel).toBeGreaterThanOrEqual(end);
        expect(block.numel).toBe(block.sliceNumel * numRanks);
        expect(block.sliceNumel % SLICE_ALIGNMENT).toBe(0);
      }),
    );
  });

  it("gives every element of every parameter to exactly one rank's slice", () => {
    fc.assert(
      fc.property(anyShapes, anyRanks, (shapes, numRanks) => {
        const block = layoutBlock(
          0,
          "b",
          3,
          shapes.map((shape, index) => spec(`p${index}`, shape)),
          replicas(numRanks),
        );
        const owned = new Map<string, number>();
        for (let rank = 0; rank < numRanks; rank++) {
          const slice = sliceOf(block, rank);
          for (const piece of piecesIn(block, slice)) {
            const { name } = piece.parameter;
            expect(piece.parameterBegin).toBe(owned.get(name) ?? 0);
            expect(slice.begin + piece.rangeBegin).toBe(piece.parameter.offset + piece.parameterBegin);
            owned.set(name, piece.parameterBegin + piece.numel);
          }
        }
        for (const { name, numel } of block.parameters) expect(owned.get(name) ?? 0).toBe(numel);
      }),
    );
  });

  it("keeps a parameter's place for every number of ranks: only the padding behind differs", () => {
    const specs = [spec("w", [30, 50]), spec("b", [30])];
    const offsets = (numRanks: number) =>
      layoutBlock(0, "b", 3, specs, replicas(numRanks)).parameters.map(({ offset }) => offset);
    expect(offsets(7)).toEqual(offsets(1));
  });
});

describe("the holders of a block", () => {
  it.each([
    [1, [[0, 1], [2, 3]]], // biome-ignore format: a group a column
    [
      2,
      [
        [0, 2],
        [1, 3],
        [4, 6],
        [5, 7],
      ],
    ],
  ])(
    "of experts are the ranks that are dealt parts of them, between %i tensor-parallel ones",
    (tp, groups) => {
      const mesh = new Mesh({ dp: 4, tp, ep: 2 });
      for (const zero of [0, 3] as const)
        for (const rank of mesh.ranks) {
          const model = new MixtureOfExperts(6, new ExpertMLP(6, 6, 12));
          cutExperts(model, { index: mesh.placeOf(rank).ep, count: 2 });
          const { layouts } = planBlocks(model, { zero, mesh, rank });
          const experts = layouts.find(({ name }) => name.includes("experts"));
          if (experts === undefined) throw new Error("no block of experts");
          const holders = groups.filter((group) =>
            zero === 0 ? group.includes(rank) : rank % tp === (group[0] as number) % tp,
          );
          expect(holdersOf(experts, rank)).toEqual(holders.flat());
        }
    },
  );
});
