import { expect, test } from "vitest";
import type { Down } from "../../src/runtime/index.ts";
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
