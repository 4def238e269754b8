import { expect, test } from "vitest";
import { ReliableDelivery } from "../../src/runtime/index.ts";
import type { KeeperInit, KeeperProtocol } from "./actors/keeper.ts";
import { actorModule, sharedWords, startSystem } from "./start-system.ts";

const numParts = 40;
const part = (index: number): { key: string; value: number } => ({
  key: `epoch-0/step-7/shard-${index}`,
  value: index,
});

test("DL-2 what was not confirmed when the receiver died is sent again, in order and under the same key", async () => {
  const { system } = startSystem();
  const { path: receivedPath, words: received } = sharedWords(numParts);
  const init = (incarnation: number): KeeperInit => ({
    receivedPath,
    ...(incarnation <= 3 ? { diesAt: 10 * incarnation } : {}),
  });
  const delivery: { current?: ReliableDelivery<KeeperProtocol, "keep"> } = {};
  const supervisor = await system.supervise({
    name: "keepers",
    strategy: "one_for_one",
    restarts: 5,
    children: [{ name: "keeper", module: actorModule("keeper"), init }],
    onRestart: () => delivery.current?.resume(),
  });
  const ref = supervisor.ref<KeeperProtocol>("keeper");
  const reliable = new ReliableDelivery<KeeperProtocol, "keep">({
    ref,
    kind: "keep",
    deadlineMs: 20_000,
    capacity: numParts,
  });
  delivery.current = reliable;
  const confirmed = await Promise.all(
    Array.from({ length: numParts }, (_, index) => reliable.send(part(index))),
  );
  expect(confirmed).toEqual(Array.from({ length: numParts }, (_, index) => `epoch-0/step-7/shard-${index}`));
  // Each part that killed its receiver before it was confirmed came once more, all others came once.
  const again = [...received].flatMap((count, index) => (count === 2 ? [index] : []));
  expect(again).toEqual([10, 20, 30]);
  expect([...received].every((count) => count === 1 || count === 2)).toBe(true);
  expect(reliable.numUnconfirmed).toBe(0);
});

test("DL-2 a receiver that remembers keys does not take an item twice while it lives", async () => {
  const { system } = startSystem();
  const { path: receivedPath, words: received } = sharedWords(numParts);
  const keeper = await system.spawn<KeeperProtocol, KeeperInit>({
    name: "keeper",
    module: actorModule("keeper"),
    init: { receivedPath },
  });
  for (let round = 0; round < 3; round++) await keeper.ask("keep", part(5), { deadlineMs: 20_000 });
  expect(received[5]).toBe(1);
});

test("DL-2 what the receiver refuses is told to the sender and not sent again; too many unconfirmed are refused", async () => {
  const { system } = startSystem();
  const { path: receivedPath } = sharedWords(numParts);
  const ref = await system.spawn<KeeperProtocol, KeeperInit>({
    name: "keeper",
    module: actorModule("keeper"),
    init: { receivedPath },
  });
  const reliable = new ReliableDelivery<KeeperProtocol, "keep">({
    ref,
    kind: "keep",
    deadlineMs: 20_000,
    capacity: 2,
  });
  const refused = reliable.send({ key: "bad", value: -1 });
  const kept = reliable.send(part(1));
  expect(() => reliable.send(part(2))).toThrow(expect.objectContaining({ code: "OUTBOX_FULL" }));
  await expect(refused).rejects.toThrow("no such part");
  expect(await kept).toBe(part(1).key);
});
