import { spawn } from "node:child_process";
import { expect, test } from "vitest";
import { type ActorRef, FakeClock } from "../../src/runtime/index.ts";
import type { BlockerProtocol } from "./actors/blocker.ts";
import type { ChildInit, ChildProtocol } from "./actors/child.ts";
import type { EchoProtocol } from "./actors/echo.ts";
import type { OwnerInit, OwnerProtocol } from "./actors/owner.ts";
import type { SinkInit, SinkProtocol } from "./actors/sink.ts";
import { actorModule, closedGate, inProcesses, startSystem } from "./start-system.ts";

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

test("DL-14 an actor does not outlive its owner, whichever actor of a tree is killed", async () => {
  const { system, log } = startSystem({ onUnhandled: () => {} });
  const depth = 3;
  const root = await system.spawn<OwnerProtocol, OwnerInit>({
    name: "r",
    module: actorModule("owner"),
    init: { depth, placement: "main" },
  });
  const names = (): string[] =>
    system
      .inspect()
      .map(({ actor }) => actor)
      .toSorted();
  expect(names()).toEqual([
    "r",
    "r0",
    "r00",
    "r000",
    "r001",
    "r01",
    "r010",
    "r011",
    "r1",
    "r10",
    "r100",
    "r101",
    "r11",
    "r110",
    "r111",
  ]);
  await root.ask("stopBelow", "r10", { deadlineMs });
  await log.until(() => !names().some((name) => name.startsWith("r10")));
  expect(names()).toEqual([
    "r",
    "r0",
    "r00",
    "r000",
    "r001",
    "r01",
    "r010",
    "r011",
    "r1",
    "r11",
    "r110",
    "r111",
  ]);
  await root.ask("stopBelow", "r0", { deadlineMs });
  await log.until(() => !names().some((name) => name.startsWith("r0")));
  expect(names()).toEqual(["r", "r1", "r11", "r110", "r111"]);
  await system.stopActor(root);
  await log.until(() => names().length === 0);
});

test("DL-14 an owned actor's failure is its owner's, up to the root, unless the owner watches", async () => {
  const { system, log } = startSystem();
  const module = actorModule("owner");
  const plain = await system.spawn<OwnerProtocol, OwnerInit>({
    name: "p",
    module,
    init: { depth: 2, placement: "thread" },
  });
  plain.tell("failBelow", "p10");
  await log.until((event) => event.kind === "actor.failed" && event.actor === "p");
  expect(log.ofKind("actor.failed").map(({ actor, cause }) => [actor, cause.message])).toEqual([
    ["p10", "p10 fails"],
    ["p1", "p10 fails"],
    ["p", "p10 fails"],
  ]);
  expect(log.unhandled.map(({ message }) => message)).toEqual([expect.stringContaining("p10 fails")]);
  const careful = await system.spawn<OwnerProtocol, OwnerInit>({
    name: "c",
    module,
    init: { depth: 1, placement: "main", watches: true },
  });
  careful.tell("failBelow", "c0");
  await log.untilEmitted("c heard of c0");
  expect(log.unhandled).toHaveLength(1);
});

/** Runs a program of these tests and resolves with its exit code and what it wrote to stderr. */
function runProgram(name: string): Promise<{ exitCode: number | null; stderr: string }> {
  const program = spawn(process.execPath, [new URL(`./programs/${name}.ts`, import.meta.url).pathname]);
  let stderr = "";
  program.stderr.on("data", (chunk: Buffer) => {
    stderr += chunk.toString();
  });
  return new Promise((resolve) => program.on("exit", (exitCode) => resolve({ exitCode, stderr })));
}

test("DL-15 a failure nobody handles ends the program with its first cause and a code other than 0", async () => {
  const { exitCode, stderr } = await runProgram("unhandled-failure");
  expect(exitCode).toBe(1);
  expect(stderr).toContain("ACTOR_UNHANDLED");
  expect(stderr).toContain("echo#1");
  expect(stderr).toContain("step 12 went wrong");
});

test("DL-15 a failure that was watched or asked for is its hearer's business", async () => {
  const { system, log } = startSystem();
  const watched = await system.spawn<EchoProtocol>({
    name: "watched",
    module: actorModule("echo"),
    placement: "main",
  });
  const heard = new Promise((resolve) => system.watch(watched, resolve));
  watched.tell("fail", "heard");
  await heard;
  const asked = await system.spawn<EchoProtocol>({
    name: "asked",
    module: actorModule("echo"),
    placement: "main",
  });
  const answer = asked.ask("hold", null, { deadlineMs });
  asked.tell("fail", "told to the asker");
  await expect(answer).rejects.toThrow("told to the asker");
  expect(log.unhandled).toEqual([]);
});

test("DL-16 the first fault is the first to be told, whatever it brings down with it", async () => {
  const { system, log } = startSystem();
  // A round starts two processes, where it takes processes.
  const rounds = inProcesses() ? 3 : 10;
  const gaveUp = Promise.withResolvers<string>();
  const supervisor = await system.supervise({
    name: "group",
    strategy: "one_for_all",
    restarts: rounds - 1,
    children: [
      { name: "source", module: actorModule("echo") },
      { name: "dependent", module: actorModule("blocker") },
    ],
    onEscalate: (cause) => gaveUp.resolve(cause.message),
  });
  for (let round = 1; round <= rounds; round++) {
    const source = supervisor.ref<EchoProtocol>("source");
    supervisor.ref<BlockerProtocol>("dependent").tell("hang", { on: source, forAnswer: true });
    await log.until(() => log.emitted.filter((text) => text === "hangs").length === round);
    source.tell("fail", `fault ${round}`);
    if (round < rounds) {
      await log.until(
        (event) =>
          event.kind === "actor.restarted" && event.actor === "dependent" && event.incarnation === round + 1,
      );
    }
  }
  expect(await gaveUp.promise).toBe("fault 1");
  const faults = log.ofKind("actor.failed").filter(({ actor }) => actor === "source");
  expect(faults.map(({ cause }) => cause.message)).toEqual(
    Array.from({ length: rounds }, (_, index) => `fault ${index + 1}`),
  );
  for (const { actor, cause } of log.ofKind("actor.failed")) {
    if (actor === "dependent")
      expect(cause).toMatchObject({
        code: "ACTOR_DOWN",
        cause: { message: expect.stringMatching(/^fault/) },
      });
  }
});

test("DL-13 an actor ended by force on the main thread reaches nobody any more", async () => {
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
  // Its native call returns at last, and then the thread ends as it was told.
  await system.stopActor(stuck);
});

test("a start that takes too long is ended and told", async () => {
  const clock = new FakeClock();
  const { system, log } = startSystem({ clock });
  const spawning = system.spawn({
    name: "endless",
    module: actorModule("endless-start"),
    startDeadlineMs: 500,
  });
  await log.untilEmitted("starting");
  clock.advance(500);
  await expect(spawning).rejects.toMatchObject({ code: "ACTOR_START_TIMEOUT" });
});

test("a module that is no actor, a name twice, and a stopped system are refused", async () => {
  const { system } = startSystem();
  const module = actorModule("echo");
  await expect(
    system.spawn({ name: "x", module: actorModule("no-actor"), placement: "main" }),
  ).rejects.toMatchObject({ code: "ACTOR_MODULE_INVALID" });
  await expect(system.spawn({ name: "x", module: new URL("file:///nowhere.ts") })).rejects.toMatchObject({
    code: "ACTOR_THREW",
  });
  const first: ActorRef<EchoProtocol> = await system.spawn({ name: "twice", module, placement: "main" });
  await expect(system.spawn({ name: "twice", module, placement: "main" })).rejects.toMatchObject({
    code: "ACTOR_NAME_TAKEN",
  });
  await system.stopActor(first);
  await system.spawn<EchoProtocol>({ name: "twice", module, placement: "main" });
  await system.stop();
  await expect(system.spawn({ name: "late", module })).rejects.toMatchObject({ code: "SYSTEM_STOPPED" });
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
