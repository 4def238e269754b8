import fc from "fast-check";
import { expect, test } from "vitest";
import type { ActorRef } from "../../src/runtime/index.ts";
import type { GateProtocol } from "./actors/gate.ts";
import type { SenderProtocol } from "./actors/sender.ts";
import type { SinkInit, SinkProtocol } from "./actors/sink.ts";
import { actorModule, sharedWords, startSystem } from "./start-system.ts";

const deadlineMs = 20_000;

test.each(["main", "thread"] as const)(
  "DL-1 every message between living actors arrives exactly once (%s)",
  async (placement) => {
    const { system } = startSystem();
    const numMessages = 100_000;
    const { path: countsPath, words: counts } = sharedWords(numMessages);
    const to = await system.spawn<SinkProtocol, SinkInit>({
      name: "sink",
      module: actorModule("sink"),
      init: { countsPath },
      placement,
    });
    const sender = await system.spawn<SenderProtocol>({
      name: "sender",
      module: actorModule("sender"),
      placement,
    });
    await sender.ask("burst", { to, from: 0, count: numMessages }, { deadlineMs });
    await sender.ask("settle", { to }, { deadlineMs });
    expect(counts.every((count) => count === 1)).toBe(true);
    expect(system.deadLetters.count()).toBe(0);
  },
);

test.each([17, 4_242, 9_999])(
  "DL-1 what a dying actor did not take becomes dead letters, and nothing arrives twice (%i)",
  async (dieAt) => {
    const { system, log } = startSystem();
    const numMessages = 10_000;
    const { path: countsPath, words: counts } = sharedWords(numMessages);
    const to = await system.spawn<SinkProtocol, SinkInit>({
      name: "sink",
      module: actorModule("sink"),
      init: { countsPath, dieAt },
    });
    const sender = await system.spawn<SenderProtocol>({ name: "sender", module: actorModule("sender") });
    await sender.ask("burst", { to, from: 0, count: numMessages }, { deadlineMs });
    await log.until((event) => event.kind === "actor.failed");
    // The sender reports its losses by the same path as this answer, so they are here before it.
    await sender.ask("flood", { to, count: 0 }, { deadlineMs });
    const numReceived = counts.reduce((sum, count) => sum + count, 0);
    expect(Math.max(...counts)).toBe(1);
    expect(numReceived).toBe(dieAt + 1);
    expect(numReceived + system.deadLetters.count("Stopped")).toBe(numMessages);
  },
);

test("DL-3 messages of one sender to one receiver arrive in order, whatever the topology", async () => {
  const { system } = startSystem();
  const sinks: ActorRef<SinkProtocol>[] = [];
  const senders: ActorRef<SenderProtocol>[] = [];
  for (const name of ["sink-a", "sink-b"]) {
    sinks.push(await system.spawn<SinkProtocol, SinkInit>({ name, module: actorModule("sink"), init: {} }));
  }
  for (const name of ["ann", "bob", "cid"]) {
    senders.push(await system.spawn<SenderProtocol>({ name, module: actorModule("sender") }));
  }
  const next = new Map<string, number>();
  const step = fc.tuple(
    fc.nat(senders.length - 1),
    fc.nat(sinks.length - 1),
    fc.integer({ min: 1, max: 300 }),
  );
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 12 }), async (steps) => {
      const bursts = steps.map(([senderIndex, sinkIndex, count]) => {
        const pair = `${senderIndex}-${sinkIndex}`;
        const from = next.get(pair) ?? 0;
        next.set(pair, from + count);
        return senders[senderIndex]!.ask(
          "burst",
          { to: sinks[sinkIndex] as ActorRef<SinkProtocol>, from, count },
          { deadlineMs },
        );
      });
      await Promise.all(bursts as Promise<unknown>[]);
    }),
    { numRuns: 8, seed: 1 },
  );
  for (const to of sinks) {
    for (const sender of senders) await sender.ask("settle", { to }, { deadlineMs });
    const taken = await to.ask("taken", null, { deadlineMs });
    for (const name of ["ann", "bob", "cid"]) {
      const values = taken.filter(([, sender]) => sender === name).map(([, , value]) => value);
      expect(values).toEqual(values.map((_, index) => index));
    }
  }
});

test("DL-3 order is not promised over a third actor: both messages arrive, in any order", async () => {
  const { system } = startSystem();
  const to = await system.spawn<SinkProtocol, SinkInit>({
    name: "sink",
    module: actorModule("sink"),
    init: {},
  });
  const ann = await system.spawn<SenderProtocol>({ name: "ann", module: actorModule("sender") });
  const via = await system.spawn<SenderProtocol>({ name: "via", module: actorModule("sender") });
  ann.tell("fork", { to, via });
  await ann.ask("settle", { to }, { deadlineMs });
  const taken = await via.ask("settle", { to }, { deadlineMs });
  expect(taken.map(([, sender]) => sender).toSorted()).toEqual(["ann", "via"]);
});

test("DL-4 last words and the news of a death both arrive, in any order", async () => {
  const { system, log } = startSystem();
  const sender = await system.spawn<SenderProtocol>({ name: "sender", module: actorModule("sender") });
  const down = new Promise((resolve) => system.watch(sender, resolve));
  sender.tell("lastWords", "farewell");
  expect(await down).toMatchObject({ actor: "sender", reason: "failed", cause: { message: "farewell" } });
  await log.untilEmitted("farewell");
});

test("DL-5 an actor handles one message at a time, awaits included", async () => {
  const { system } = startSystem();
  const gate = await system.spawn<GateProtocol>({ name: "gate", module: actorModule("gate") });
  await Promise.all(Array.from({ length: 20 }, () => gate.ask("pass", null, { deadlineMs })));
  expect(await gate.ask("most", null, { deadlineMs })).toBe(1);
});

test("DL-5 kinds declared concurrent overlap, and only they", async () => {
  const { system } = startSystem();
  const gate = await system.spawn<GateProtocol>({ name: "gate", module: actorModule("gate") });
  await Promise.all(Array.from({ length: 20 }, () => gate.ask("passTogether", null, { deadlineMs })));
  expect(await gate.ask("most", null, { deadlineMs })).toBeGreaterThan(1);
});
