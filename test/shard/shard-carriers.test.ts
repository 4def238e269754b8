import { describe, expect, it } from "vitest";
import { connectedGroups, groupsOfShard } from "../../src/actors/shard/index.ts";
import type { GroupPlan } from "../../src/compute/collectives/index.ts";
import type { OptimizerSpec } from "../../src/compute/optim/index.ts";
import { layoutBlock, Mesh, type MeshShape, replicas } from "../../src/compute/parallel/index.ts";

const LAMB = { kind: "lamb", groups: [] } as unknown as OptimizerSpec;
const ADAM = { kind: "adamw", groups: [] } as unknown as OptimizerSpec;

interface World {
  readonly shape: Partial<MeshShape>;
  readonly carrier: "hosts" | "gloo";
  readonly ranksPerHost: number;
  readonly optimizer: OptimizerSpec;
}

/** By rank, the groups that its shard joins, in order: of a model whose first and last stage tie a parameter. */
function everyShard({ shape, carrier, ranksPerHost, optimizer }: World): (readonly number[])[][] {
  const mesh = new Mesh(shape);
  const plan: GroupPlan = {
    run: "run",
    backend: "gloo",
    carrier,
    reduction: "ordered",
    hosts: mesh.ranks.map((rank) => Math.floor(rank / ranksPerHost)),
    rendezvous: "store:host:1",
  };
  return mesh.ranks.map((rank) => {
    const { pp, tp } = mesh.placeOf(rank);
    const split = { dim: 0, index: tp, count: mesh.shape.tp, logicalShape: [64, 64] };
    const block = (name: string, group: readonly number[]) =>
      layoutBlock(0, name, 1, [{ name, shape: [64, 64], split } as never], { ...replicas(1), group });
    const across = (stages: readonly number[]) =>
      stages.flatMap((stage) => mesh.groupOf("dp", mesh.rankAt({ pp: stage, dp: 0, tp })));
    const last = mesh.shape.pp - 1;
    const layouts = [block("layer", mesh.groupOf("dp", rank))];
    if (last > 0 && (pp === 0 || pp === last)) layouts.push(block("embedding", across([0, last])));
    const peers = {
      groups: plan,
      replicas: mesh.groupOf("dp", rank),
      modelParallel: mesh.groupOf("mp", rank),
      together: [],
    };
    return [...connectedGroups(plan, groupsOfShard({ peers, layouts, optimizers: [optimizer] }, rank))];
  });
}

/** Whether all come through if each waits in its first group until all of that group's members do. */
function allJoin(ofRanks: readonly (readonly (readonly number[])[])[]): boolean {
  const left = ofRanks.map((groups) => groups.map((ranks) => ranks.join(" ")));
  const waits = (rank: number, name: string) => left[rank]?.[0] === name;
  for (;;) {
    const ready = left
      .map(([name]) => name)
      .find((name) => name?.split(" ").every((rank) => waits(Number(rank), name)));
    if (ready === undefined) return left.every((groups) => groups.length === 0);
    for (const rank of ready.split(" ")) left[Number(rank)]?.shift();
  }
}

const worlds: readonly (readonly [string, World])[] = [
  ["replicas alone", { shape: { dp: 6 }, carrier: "gloo", ranksPerHost: 6, optimizer: ADAM }],
  ["many replicas", { shape: { dp: 24 }, carrier: "hosts", ranksPerHost: 8, optimizer: LAMB }],
  ["split layers", { shape: { dp: 4, tp: 4 }, carrier: "gloo", ranksPerHost: 4, optimizer: LAMB }],
  [
    "stages and a tied block",
    { shape: { dp: 4, tp: 2, pp: 4 }, carrier: "gloo", ranksPerHost: 4, optimizer: ADAM },
  ],
  [
    "the same over hosts",
    { shape: { dp: 4, tp: 2, pp: 8 }, carrier: "hosts", ranksPerHost: 4, optimizer: LAMB },
  ],
  [
    "hosts that fit no axis",
    { shape: { dp: 3, tp: 3, pp: 4 }, carrier: "hosts", ranksPerHost: 5, optimizer: LAMB },
  ],
];

describe("the groups that shards join", () => {
  it.each(worlds)("are joined by all of their members, one after the other: %s", (_, world) => {
    const ofRanks = everyShard(world);
    for (const [rank, groups] of ofRanks.entries())
      for (const ranks of groups) {
        expect(ranks).toContain(rank);
        for (const member of ranks) expect(ofRanks[member]).toContainEqual(ranks);
      }
    expect(allJoin(ofRanks)).toBe(true);
  });

  it("are as large as what replicates a part of the model or adds its statistics up, not as the world", () => {
    const world = {
      shape: { dp: 8, tp: 8, pp: 16 },
      carrier: "hosts",
      ranksPerHost: 8,
      optimizer: ADAM,
    } as const;
    const ofRanks = everyShard(world);
    // One of a row and column lives on the host; replicas that tie a parameter with another stage's are one group with those.
    expect(ofRanks[0]?.map((ranks) => ranks.length)).toEqual([16, 16]);
    expect(ofRanks[64]?.map((ranks) => ranks.length)).toEqual([16, 8]);
  });

  it("are none among those of one host", () => {
    const world = { shape: { dp: 4, tp: 2 }, carrier: "hosts", ranksPerHost: 8, optimizer: LAMB } as const;
    expect(everyShard(world)).toEqual(Array(8).fill([]));
  });
});
