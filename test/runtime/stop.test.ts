import { expect, test, vi } from "vitest";
import { FakeClock } from "../fixtures/fake-clock.ts";
import { patience } from "../fixtures/patience.ts";
import type { BlockerProtocol } from "./actors/blocker.ts";
import type { ChildInit, ChildProtocol } from "./actors/child.ts";
import type { EchoProtocol } from "./actors/echo.ts";
import type { SenderProtocol } from "./actors/sender.ts";
import type { SinkInit, SinkProtocol } from "./actors/sink.ts";
import { actorModule, closedGate, sharedWords, startSystem } from "./start-system.ts";

const deadlineMs = 20_000;

test("DL-13 what has arrived is handled, then the stop hook runs, then the actor is gone", async () => {
  const { system, log } = startSystem();
  const child = await system.spawn<ChildProtocol, ChildInit>({
    name: "a",
    module: actorModule("child"),
    init: {},
  });
  for (let index = 0; index < 100; index++) child.tell("note", String(index));
  await system.stopActor(child);
  expect(log.emitted).toEqual([
    "start a#1",
    ...Array.from({ length: 100 }, (_, index) => `a#1 ${index}`),
    "stop a#1",
  ]);
  expect(log.events.at(-1)).toMatchObject({ kind: "actor.stopped", actor: "a", forced: false });
  expect(system.deadLetters.count()).toBe(0);
});

test.each(["main", "thread"] as const)(
  "DL-13 an actor's last messages arrive before it is gone, also to an actor that it never wrote to before (%s)",
  async (placement) => {
    const { system, log } = startSystem();
    const { path: countsPath, words: counts } = sharedWords(1);
    const sender = await system.spawn<SenderProtocol>({
      name: "sender",
      module: actorModule("sender"),
      placement,
    });
    const to = await system.spawn<SinkProtocol, SinkInit>({
      name: "sink",
      module: actorModule("sink"),
      init: { countsPath },
    });
    sender.tell("farewell", { to, as: "sender", value: 0 });
    await log.until(({ kind }) => kind === "actor.stopped");
    expect(system.deadLetters.count()).toBe(0);
    await vi.waitFor(() => expect(counts[0]).toBe(1), patience);
  },
);

test.each(["main", "thread"] as const)(
  "DL-1 what an actor says for the first time when it fails is a dead letter, for its link is not there yet (%s)",
  async (placement) => {
    const { system, log } = startSystem();
    const sender = await system.spawn<SenderProtocol>({
      name: "sender",
      module: actorModule("sender"),
      placement,
    });
    const to = await system.spawn<SinkProtocol, SinkInit>({
      name: "sink",
      module: actorModule("sink"),
      init: {},
    });
    sender.tell("farewell", { to, as: "sender", value: 0, failure: "no more" });
    await log.until(({ kind }) => kind === "actor.failed");
    expect(system.deadLetters.latest(() => true)).toMatchObject([
      { reason: "Stopped", messageKind: "item", from: "sender#1", to: "sink#1" },
    ]);
  },
);

test.each(["main", "thread"] as const)(
  "DL-13 an actor that never stops is ended at the deadline, its siblings in order (%s)",
  async (placement) => {
    const clock = new FakeClock();
    const { system, log } = startSystem({ clock });
    const supervisor = await system.supervise({
      name: "group",
      strategy: "one_for_one",
      stopDeadlineMs: 3_000,
      children: [
        { name: "good", module: actorModule("child"), placement, init: (): ChildInit => ({}) },
        {
          name: "stuck",
          module: actorModule("child"),
          placement,
          init: (): ChildInit => ({ neverStops: true }),
        },
      ],
    });
    const stopping = supervisor.stop();
    await log.untilEmitted("stop stuck#1");
    clock.advance(2_999);
    expect(log.ofKind("actor.stopped")).toEqual([]);
    clock.advance(1);
    await stopping;
    expect(log.ofKind("actor.stopped")).toMatchObject([
      { actor: "stuck", forced: true },
      { actor: "good", forced: false },
    ]);
  },
);

test("DL-13 an actor that blocks hears at once that it is to stop, and may clean up by blocking calls", async () => {
  const { system, log } = startSystem();
  const echo = await system.spawn<EchoProtocol>({ name: "echo", module: actorModule("echo") });
  const blocker = await system.spawn<BlockerProtocol>({ name: "blocker", module: actorModule("blocker") });
  blocker.tell("hang", { on: echo });
  await log.untilEmitted("hangs");
  await system.stopActor(blocker);
  expect(log.emitted).toEqual(["hangs", "cleaned up with tidy"]);
  expect(log.events.at(-1)).toMatchObject({ kind: "actor.stopped", actor: "blocker", forced: false });
});

test("DL-13 an actor ended by force on the main thread sends nothing more", async () => {
  const clock = new FakeClock();
  const { system, log } = startSystem({ clock });
  const gate = Promise.withResolvers<void>();
  const init = { stopsAfter: gate.promise };
  const module = actorModule("child");
  const child = await system.spawn<ChildProtocol, ChildInit>({ name: "a", module, placement: "main", init });
  const stopping = system.stopActor(child, { deadlineMs: 100 });
  await log.untilEmitted("stop a#1");
  clock.advance(100);
  await stopping;
  gate.resolve();
  await new Promise(setImmediate);
  expect(log.emitted).toEqual(["start a#1", "stop a#1"]);
});

test("DL-13 a thread that not even force can end is named, and the others are stopped all the same", async () => {
  const clock = new FakeClock();
  const { system, log } = startSystem({ clock });
  const other = await system.spawn<EchoProtocol>({ name: "other", module: actorModule("echo") });
  const stuck = await system.spawn<EchoProtocol>({ name: "stuck", module: actorModule("echo") });
  stuck.tell("runProgram", "sleep 3");
  await log.untilEmitted("runs sleep 3");
  const refused = expect(system.stopActor(stuck, { deadlineMs: 100 })).rejects.toMatchObject({
    code: "ACTOR_STUCK",
    fields: { actor: "stuck#1" },
  });
  clock.advance(100);
  expect(log.events.at(-1)).toMatchObject({ kind: "actor.stopped", actor: "stuck", forced: true });
  clock.advance(5_000);
  await refused;
  await system.stopActor(other);
  await expect(stuck.ask("echo", 1, { deadlineMs })).rejects.toMatchObject({ code: "ACTOR_DOWN" });
  // Its native call returns at last, and then the thread ends as ordered.
  await system.stopActor(stuck);
});

test("an actor that is stopped without draining leaves its messages to the dead letters", async () => {
  const { system, log } = startSystem();
  const sink = await system.spawn<SinkProtocol, SinkInit>({
    name: "sink",
    module: actorModule("sink"),
    init: {},
  });
  const { gate, open } = closedGate();
  sink.tell("block", gate);
  await log.untilEmitted("blocked");
  for (let value = 0; value < 10; value++) sink.tell("item", ["main", value]);
  const stopping = system.stopActor(sink, { drain: false });
  await new Promise(setImmediate);
  open();
  await stopping;
  expect(system.deadLetters.latest()).toHaveLength(10);
  expect(system.deadLetters.count("Stopped")).toBe(10);
});
