import { expect, test } from "vitest";
import type { ShardGroupProtocol } from "../../src/actors/protocols/index.ts";
import { ShardCarriers, ShardGroups } from "../../src/actors/shard/index.ts";
import type { GroupPlan } from "../../src/compute/collectives/index.ts";
import type { ActorRef } from "../../src/runtime/index.ts";

test("a peer's message that comes before a shard knows what carries tensors waits for that, and is taken", async () => {
  using groups = new ShardGroups(0);
  const reported: unknown[] = [];
  const peer = {
    tell: (_kind: string, message: unknown) => reported.push(message),
    address: { name: "shard", incarnation: 1 },
  } as unknown as ActorRef<ShardGroupProtocol>;
  groups.join([peer, peer]);
  // Prepared sooner, the other one is at its first collective.
  groups.contributed({ group: "0 1", key: "first", member: 1, value: null });
  const plan: GroupPlan = {
    run: "early",
    backend: "local",
    carrier: "alias",
    reduction: "ordered",
    rendezvous: undefined,
  };
  const place = { generation: 0, rank: 0, devices: ["sim:0", "sim:1"], deadlineMs: 1_000 } as const;
  groups.carryBy(new ShardCarriers(plan, place, [[0, 1]]), "ordered");

  const group = groups.at("0 1");
  expect(group.sharesMemory, "made of what carries, not before it").toBe(false);
  await group.barrier("first");
  expect(reported).toEqual([{ group: "0 1", key: "first", member: 0, value: null }]);
});
