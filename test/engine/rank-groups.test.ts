import { afterEach, expect, test } from "vitest";
import { groupNamesOf, RankGroups } from "../../src/actors/engine/rank/rank-groups.ts";
import { abortGroup, type GroupPlan } from "../../src/compute/collectives/index.ts";
import { Mesh, type MeshAxis } from "../../src/compute/parallel/index.ts";
import { scope, tensor } from "../../src/compute/tensor/index.ts";

const mesh = new Mesh({ pp: 2, dp: 2, tp: 2, ep: 2 });
const axes: readonly MeshAxis[] = ["tp", "ep", "dp", "pp", "mp", "world"];
const opened: RankGroups[] = [];

afterEach(() => {
  for (const groups of opened.splice(0)) groups[Symbol.dispose]();
});

/** Every rank's groups, in one thread: it issues each rank's part before it waits for any. */
function everyRank(run: string): { plan: GroupPlan; groups: RankGroups[] } {
  const plan: GroupPlan = {
    run,
    backend: "local",
    carrier: "alias",
    reduction: "ordered",
    rendezvous: undefined,
  };
  const groups = mesh.ranks.map(
    (rank) =>
      new RankGroups(plan, mesh.shape, rank, {
        generation: 0,
        deadlineMs: 30_000,
        devices: mesh.ranks.map(() => "cpu" as const),
        status: new Uint8Array(80),
      }),
  );
  opened.push(...groups);
  return { plan, groups };
}

test("ranks reduce along every axis of the mesh, and a rank that is alone on one has no group there", () => {
  const { groups } = everyRank("every axis");
  for (const axis of axes) {
    const sums = scope(() => {
      const values = mesh.ranks.map((rank) => tensor([2 ** rank], { dtype: "float64" }));
      const works = groups.map((each, rank) => each.along(axis)?.allReduce(values[rank] as never));
      for (const work of works) work?.wait();
      return values.map((each) => each.item());
    });
    const expected = mesh.ranks.map((rank) =>
      mesh.groupOf(axis, rank).reduce((sum, member) => sum + 2 ** member, 0),
    );
    expect(sums, axis).toEqual(expected);
  }
  expect(groups.map((each) => each.along("edp"))).toEqual(mesh.ranks.map(() => undefined));
});

test("a generation's end aborts the groups of every axis, also those that were joined late", () => {
  const { plan, groups } = everyRank("end of a generation");
  for (const each of groups) for (const axis of axes) each.along(axis);
  const names = groupNamesOf(plan, mesh.shape, 0);
  const numEnded = names.reduce((sum, name) => sum + abortGroup(name, "rank-3 has ended"), 0);
  expect(numEnded).toBe(axes.length * mesh.size);
  for (const axis of axes) {
    expect(() => groups[0]?.along(axis)?.barrier(), axis).toThrow(/rank-3 has ended/);
  }
});
