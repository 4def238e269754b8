import { expect, test, vi } from "vitest";
import { FakeClock } from "../fixtures/fake-clock.ts";
import { patience } from "../fixtures/patience.ts";
import type { BlockerProtocol } from "./actors/blocker.ts";
import type { CollectiveProtocol } from "./actors/collective.ts";
import type { EchoProtocol } from "./actors/echo.ts";
import { actorModule, closedGate, seen, startSystem } from "./start-system.ts";

test("DL-23 a healthy thread reads where a stuck one is stuck, without asking it", async () => {
  const { system, log } = startSystem();
  const { gate, open } = closedGate();
  const rank = await system.spawn<CollectiveProtocol>({ name: "rank-2", module: actorModule("collective") });
  rank.tell("allReduce", { gate, sequence: 1841 });
  rank.tell("allReduce", { gate, sequence: 1842 });
  await log.untilEmitted("entered 1841");
  await seen(() =>
    expect(system.inspect()[0]).toMatchObject({
      actor: "rank-2",
      incarnation: 1,
      state: "handling",
      handling: "allReduce",
      numHandled: 1,
      op: { name: "all_reduce", block: "layers.3", sequence: 1841, ageMs: expect.any(Number) },
    }),
  );
  open();
  await log.untilEmitted("entered 1842");
  await system.stopActor(rank);
  expect(system.inspect()).toEqual([]);
});

test("DL-23 an actor that blocks for an answer is seen waiting, and for whom", async () => {
  const { system, log } = startSystem();
  const on = await system.spawn<EchoProtocol>({ name: "shard-0", module: actorModule("echo") });
  const blocker = await system.spawn<BlockerProtocol>({ name: "rank-0", module: actorModule("blocker") });
  blocker.tell("hang", { on, forAnswer: true });
  await log.untilEmitted("hangs");
  // Shared memory has no event: look until the thread, which needs nothing more, has gone to sleep.
  let status = system.inspect().find(({ actor }) => actor === "rank-0");
  while (status?.state !== "waiting") {
    await new Promise(setImmediate);
    status = system.inspect().find(({ actor }) => actor === "rank-0");
  }
  expect(status).toMatchObject({ handling: "hang", waitingFor: "shard-0#1" });
});

test("DL-23 an actor without progress is reported once, with what it is at", async () => {
  const clock = new FakeClock();
  const { system, log } = startSystem({ clock, stallAfterMs: 1_000 });
  const echo = await system.spawn<EchoProtocol>({
    name: "echo",
    module: actorModule("echo"),
    placement: "main",
  });
  const idle = await system.spawn<EchoProtocol>({
    name: "idle",
    module: actorModule("echo"),
    placement: "main",
  });
  const held = echo.ask("relay", { to: idle, message: 1 }, { deadlineMs: 60_000 });
  await held;
  clock.advance(5_000);
  expect(log.ofKind("actor.stalled")).toEqual([]);
  const stuck = echo.ask("relayHold", { to: idle }, { deadlineMs: 60_000 });
  await new Promise(setImmediate);
  clock.advance(900);
  expect(log.ofKind("actor.stalled")).toEqual([]);
  clock.advance(5_000);
  expect(log.ofKind("actor.stalled")).toMatchObject([
    { actor: "echo", state: "handling", handling: "relayHold" },
  ]);
  clock.advance(60_000);
  await expect(stuck).rejects.toMatchObject({ code: "ASK_TIMEOUT" });
});

test("DL-23 an actor that is stuck behind an await, and so seems idle, is distinguished from an idle one", async () => {
  const clock = new FakeClock();
  const { system, log } = startSystem({
    clock,
    stallAfterMs: 1_000,
    isToProgress: ({ unresponsiveMs }) => unresponsiveMs !== undefined,
  });
  const { gate, open } = closedGate();
  const stuck = await system.spawn<CollectiveProtocol>({ name: "stuck", module: actorModule("collective") });
  const idle = await system.spawn<EchoProtocol>({ name: "idle", module: actorModule("echo") });
  stuck.tell("allReduceLater", { gate, sequence: 7 });
  await log.untilEmitted("entered 7");
  // Its events are sent before its handler reaches the await.
  const isIdle = () => {
    const status = system.inspect().find(({ actor }) => actor === "stuck");
    return status?.state === "idle" && status.op !== undefined;
  };
  // As long as the test may take: a busy machine takes its time.
  await vi.waitUntil(isIdle, patience);
  // Looks until it is reported, and some more: the other one never is.
  for (let numLooks = 0; numLooks < 6 || log.ofKind("actor.stalled").length === 0; numLooks++) {
    clock.advance(500);
    // It has heard what was sent before.
    await idle.ask("echo", numLooks, { deadlineMs: 60_000 });
    const handled = () => system.inspect().find(({ actor }) => actor === "idle")?.numHandled;
    await seen(() => expect(handled()).toBe(numLooks + 1));
  }
  expect(log.ofKind("actor.stalled")).toMatchObject([
    {
      actor: "stuck",
      state: "idle",
      op: { name: "all_reduce", sequence: 7 },
      unresponsiveMs: expect.any(Number),
    },
  ]);
  open();
});

test("DL-16 waiting times that would hide the inner fault are refused", () => {
  expect(() => startSystem({ stallAfterMs: 60_000, messaging: { sendDeadlineMs: 60_000 } })).toThrow(
    expect.objectContaining({ code: "TIMEOUT_LADDER" }),
  );
});
