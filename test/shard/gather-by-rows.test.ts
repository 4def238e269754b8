import { expect, test } from "vitest";
import type { ShardGroupProtocol } from "../../src/actors/protocols/index.ts";
import { gatherByRows, rowLength, ShardCarriers, ShardGroups } from "../../src/actors/shard/index.ts";
import type { GroupPlan } from "../../src/compute/collectives/index.ts";
import { hold, liveTensors, tensor } from "../../src/compute/tensor/index.ts";
import type { ActorRef } from "../../src/runtime/index.ts";

test.each([
  [1, 1],
  [8, 8],
  [9, 3],
  [12, 3],
  [13, 13],
  [128, 8],
  [1024, 32],
])("%i members stand in rows of %i: as nearly square as their number allows", (size, length) => {
  expect(rowLength(size)).toBe(length);
});

test("twelve members, no world of their own, each have all values in order, and tell five others in place of eleven", async () => {
  const ranks = Array.from({ length: 12 }, (_, member) => 3 * member + 1);
  const plan: GroupPlan = {
    run: "rows",
    backend: "local",
    carrier: "alias",
    reduction: "ordered",
    rendezvous: undefined,
  };
  const reported = new Map(ranks.map((rank) => [rank, 0]));
  const world = new Map<number, ShardGroups>();
  for (const rank of ranks) {
    const groups = new ShardGroups(rank);
    // Messages to it come in the next turn, as those of other threads do.
    const peerOf = (to: number) =>
      ({
        tell: (_kind: string, message: ShardGroupProtocol["contribute"]["in"]) => {
          reported.set(rank, (reported.get(rank) ?? 0) + 1);
          setImmediate(() => world.get(to)?.contributed(message));
        },
        address: { name: `shard-${to}`, uid: to, incarnation: 1 },
      }) as unknown as ActorRef<ShardGroupProtocol>;
    groups.join(Array.from({ length: 40 }, (_, to) => peerOf(to)));
    const place = { generation: 0, rank, devices: Array<"cpu">(40).fill("cpu"), deadlineMs: 1_000 };
    groups.carryBy(new ShardCarriers(plan, place, []), "ordered");
    world.set(rank, groups);
  }
  const before = liveTensors();
  const all = await Promise.all(
    ranks.map(async (rank) => {
      const value = hold(() => tensor([rank, rank / 7], { dtype: "float64" }));
      const gathered = await gatherByRows(world.get(rank) as ShardGroups, ranks, rank, "norm/0", value);
      const values = [...(gathered.toTypedArray() as Float64Array)];
      gathered.dispose();
      return values;
    }),
  );
  for (const values of all) expect(values).toEqual(ranks.flatMap((rank) => [rank, rank / 7]));
  expect([...reported.values()]).toEqual(ranks.map(() => 2 + 3));
  expect(liveTensors(), "nothing is left").toBe(before);
});
