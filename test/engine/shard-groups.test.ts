import { expect, test } from "vitest";
import { PeerCarrier } from "../../src/collectives/carrier.ts";
import { ShardGroups } from "../../src/engine/shard/index.ts";
import type { ShardGroupProtocol } from "../../src/protocols/index.ts";
import type { ActorRef } from "../../src/runtime/index.ts";

test("a peer's message that comes before a shard knows what carries tensors waits for that, and is taken", async () => {
  using groups = new ShardGroups(0);
  const told: unknown[] = [];
  const peer = {
    tell: (_kind: string, message: unknown) => told.push(message),
    address: { name: "shard", incarnation: 1 },
  } as unknown as ActorRef<ShardGroupProtocol>;
  groups.join([peer, peer]);
  // Prepared sooner, the other one is at its first collective.
  groups.contributed({ group: "0 1", key: "first", member: 1, value: null });
  groups.carryBy(new PeerCarrier(["sim:0", "sim:1"], 0), "ordered");

  const group = groups.at("0 1");
  expect(group.sharesMemory, "made of the carrier, not before it").toBe(false);
  await group.barrier("first");
  expect(told).toEqual([{ group: "0 1", key: "first", member: 0, value: null }]);
});
