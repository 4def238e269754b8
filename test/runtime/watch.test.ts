import { describe, expect, test } from "vitest";
import type { ChildSpec, Down, Strategy } from "../../src/runtime/index.ts";
import type { ChildProtocol } from "./actors/child.ts";
import type { EchoProtocol } from "./actors/echo.ts";
import type { SinkInit, SinkProtocol } from "./actors/sink.ts";
import { actorModule, startSystem } from "./start-system.ts";

const deadlineMs = 20_000;

test("DL-10 each watch fires exactly once, registered before, during or after the death", async () => {
  const { system } = startSystem();
  const mortal = await system.spawn<EchoProtocol>({ name: "mortal", module: actorModule("echo") });
  const heard: string[] = [];
  const downs: Promise<Down>[] = [];
  const watch = (when: string): void => {
    const down = new Promise<Down>((resolve) => {
      system.watch(mortal, (news) => {
        heard.push(when);
        resolve(news);
      });
    });
    downs.push(down);
  };
  watch("before");
  mortal.tell("fail", "the end");
  watch("during");
  await downs[0];
  watch("after");
  for (const down of await Promise.all(downs)) {
    expect(down).toMatchObject({
      actor: "mortal",
      incarnation: 1,
      reason: "failed",
      cause: { message: "the end" },
    });
  }
  await new Promise(setImmediate);
  expect(heard.toSorted()).toEqual(["after", "before", "during"]);
});

test.each(["main", "thread"] as const)(
  "DL-10 an actor hears of another's death, also of one long dead (%s)",
  async (placement) => {
    const { system, log } = startSystem();
    const sink = await system.spawn<SinkProtocol, SinkInit>({
      name: "sink",
      module: actorModule("sink"),
      init: {},
      placement,
    });
    const mortal = await system.spawn<EchoProtocol>({ name: "mortal", module: actorModule("echo") });
    sink.tell("watch", mortal);
    await log.untilEmitted({ watching: "mortal" });
    await system.stopActor(mortal);
    await log.untilEmitted({ down: "mortal", reason: "stopped" });
    sink.tell("watch", mortal);
    await log.until(
      () => log.emitted.filter((payload) => (payload as { down?: string }).down === "mortal").length === 2,
    );
    await sink.ask("taken", null, { deadlineMs });
    expect(log.emitted.filter((payload) => (payload as { down?: string }).down === "mortal")).toHaveLength(2);
  },
);

test("DL-10 a watch taken back does not fire, even when the death is known already", async () => {
  const { system, log } = startSystem();
  const sink = await system.spawn<SinkProtocol, SinkInit>({
    name: "sink",
    module: actorModule("sink"),
    init: {},
  });
  const mortal = await system.spawn<EchoProtocol>({ name: "mortal", module: actorModule("echo") });
  const changedItsMind = sink.ask("watchUntilDown", mortal, { deadlineMs });
  mortal.tell("fail", "the end");
  expect(await changedItsMind).toBe("mortal is down, and I no longer care");
  await sink.ask("taken", null, { deadlineMs });
  expect(log.emitted).toEqual([]);
  let numFired = 0;
  system.watch(sink, () => numFired++);
  system.unwatch(sink);
  await system.stopActor(sink);
  system.watch(sink, () => numFired++);
  system.unwatch(sink);
  await new Promise(setImmediate);
  expect(numFired).toBe(0);
});

describe.each(["main", "thread"] as const)("DL-10 siblings (%s)", (placement) => {
  const sink = (name: string): ChildSpec => ({
    name,
    module: actorModule("sink"),
    placement,
    init: (): SinkInit => ({}),
  });
  const child = (name: string): ChildSpec => ({ ...sink(name), module: actorModule("child") });

  async function start(strategy: Strategy, ...names: string[]) {
    const { system, log } = startSystem();
    const children = [...names.map(sink), child("mortal"), child("other")];
    const supervisor = await system.supervise({ name: "family", strategy, children });
    const watch = async (name: string, incarnation = 1) => {
      supervisor.ref<SinkProtocol>(name).tell("watchSiblings", null);
      await log.untilEmitted({ watchingSiblings: `${name}#${incarnation}` });
    };
    const heard = () =>
      log.emitted.filter((payload) => typeof payload === "object" && "sibling" in (payload as object));
    const restarted = (name: string, incarnation: number) =>
      log.until(
        (event) =>
          event.kind === "actor.restarted" && event.actor === name && event.incarnation === incarnation,
      );
    return { system, log, supervisor, watch, heard, restarted };
  }

  test("each watcher hears of the first that ends, once, and of no other; a later one hears at once", async () => {
    const { log, supervisor, watch, heard, restarted } = await start("one_for_one", "a", "b", "late");
    await watch("a");
    await watch("b");
    supervisor.ref<ChildProtocol>("mortal").tell("fail", "the end");
    for (const name of ["a", "b"])
      await log.untilEmitted({ sibling: "mortal", reason: "failed", by: `${name}#1` });
    await restarted("mortal", 2);
    supervisor.ref<ChildProtocol>("other").tell("fail", "another end");
    await restarted("other", 2);
    await watch("late");
    await log.untilEmitted({ sibling: "mortal", reason: "failed", by: "late#1" });
    for (const name of ["a", "b", "late"])
      await supervisor.ref<SinkProtocol>(name).ask("taken", null, { deadlineMs });
    expect(heard()).toHaveLength(3);
  });

  test("restarted siblings hear of no earlier end, but of the next", async () => {
    const { log, supervisor, watch, heard, restarted } = await start("one_for_all", "a");
    supervisor.ref<ChildProtocol>("mortal").tell("fail", "the end");
    await restarted("other", 2);
    await watch("a", 2);
    await supervisor.ref<SinkProtocol>("a").ask("taken", null, { deadlineMs });
    expect(heard()).toEqual([]);
    supervisor.ref<ChildProtocol>("other").tell("fail", "another end");
    await log.untilEmitted({ sibling: "other", reason: "failed", by: "a#2" });
  });
});

test("DL-10 an actor without supervisor has no siblings, and learns of no other's end", async () => {
  const { system, log } = startSystem();
  const [watcher, mortal] = await Promise.all([
    system.spawn<SinkProtocol, SinkInit>({ name: "alone", module: actorModule("sink"), init: {} }),
    system.spawn<EchoProtocol>({ name: "mortal", module: actorModule("echo") }),
  ]);
  watcher.tell("watchSiblings", null);
  await log.untilEmitted({ watchingSiblings: "alone#1" });
  await system.stopActor(mortal);
  await watcher.ask("taken", null, { deadlineMs });
  expect(log.emitted).toEqual([{ watchingSiblings: "alone#1" }]);
});
