import { describe, expect, test } from "vitest";
import { Mesh } from "../../src/compute/parallel/index.ts";

describe("a mesh", () => {
  // Megatron's published layout for 16 ranks.
  const mesh = new Mesh({ pp: 4, dp: 2, tp: 2 });

  test("puts tensor-parallel neighbours side by side", () => {
    expect(mesh.groups("tp").slice(0, 3)).toEqual([
      [0, 1],
      [2, 3],
      [4, 5],
    ]);
  });

  test("puts replicas between tensor-parallel neighbours and stages", () => {
    expect(mesh.groups("dp").slice(0, 4)).toEqual([
      [0, 2],
      [1, 3],
      [4, 6],
      [5, 7],
    ]);
  });

  test("puts stages outermost", () => {
    expect(mesh.groups("pp")).toEqual([
      [0, 4, 8, 12],
      [1, 5, 9, 13],
      [2, 6, 10, 14],
      [3, 7, 11, 15],
    ]);
  });

  test("joins what holds one replica", () => {
    expect(mesh.groups("mp")).toEqual([
      [0, 1, 4, 5, 8, 9, 12, 13],
      [2, 3, 6, 7, 10, 11, 14, 15],
    ]);
  });

  test.each([
    [8, { pp: 1, dp: 8, tp: 1 }],
    [8, { pp: 2, dp: 2, tp: 2 }],
    [4, { pp: 4, dp: 1, tp: 1 }],
    [12, { pp: 3, dp: 2, tp: 2 }],
  ])("finds every one of %i ranks where it stands", (size, shape) => {
    const grid = new Mesh(shape);
    expect(grid.size).toBe(size);
    for (const rank of grid.ranks) expect(grid.rankAt(grid.placeOf(rank))).toBe(rank);
  });

  test("agrees with BMTrain's topology", () => {
    for (const [world, pp, tp] of [
      [4, 2, 1],
      [8, 2, 2],
      [8, 4, 2],
      [8, 1, 4],
    ] as const) {
      const grid = new Mesh({ pp, tp, dp: world / (pp * tp) });
      const stageSize = world / pp;
      for (const rank of grid.ranks) {
        const place = grid.placeOf(rank);
        expect(place.pp).toBe(Math.floor(rank / stageSize));
        expect(place.tp).toBe(rank % tp);
        expect(grid.groupOf("pp", rank)).toEqual(
          Array.from({ length: pp }, (_, stage) => (rank % stageSize) + stage * stageSize),
        );
        expect(grid.groupOf("dp", rank).indexOf(rank)).toBe(Math.floor((rank % stageSize) / tp));
      }
    }
  });

  test("deals experts to neighbouring replicas", () => {
    const grid = new Mesh({ dp: 4, ep: 2 });
    expect(grid.groups("ep")).toEqual([
      [0, 1],
      [2, 3],
    ]);
    expect(grid.groups("edp")).toEqual([
      [0, 2],
      [1, 3],
    ]);
  });

  test("refuses sizes that do not fit", () => {
    expect(() => new Mesh({ dp: 3, ep: 2 })).toThrow(
      "[mesh] expected ep to divide the 3 data-parallel ranks, got 2",
    );
    expect(() => new Mesh({ tp: 0 })).toThrow("[mesh] expected tp to be a whole number ≥ 1, got 0");
  });
});
