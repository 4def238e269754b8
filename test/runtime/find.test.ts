import { expect, test } from "vitest";
import type { EchoProtocol } from "./actors/echo.ts";
import type { FinderProtocol } from "./actors/finder.ts";
import { actorModule, startSystem } from "./start-system.ts";

const deadlineMs = 20_000;
const echoModule = actorModule("echo");
const finderModule = actorModule("finder");

test.each(["reach", "reachBlocking"] as const)(
  "DL-25 an actor finds another by its name, and its next incarnation (%s)",
  async (reach) => {
    const { system, log } = startSystem();
    const supervisor = await system.supervise({
      name: "echoes",
      strategy: "one_for_one",
      backoff: { firstMs: 100, maxMs: 100 },
      children: [{ name: "echo", module: echoModule }],
    });
    const finder = await system.spawn<FinderProtocol>({ name: "finder", module: finderModule });
    expect(await finder.ask(reach, { name: "echo", value: 1, deadlineMs }, { deadlineMs })).toBe(1);
    supervisor.ref<EchoProtocol>("echo").tell("fail", "once");
    await log.until((event) => event.kind === "actor.failed");
    // It is being started again: the search waits for that.
    expect(await finder.ask(reach, { name: "echo", value: 2, deadlineMs }, { deadlineMs })).toBe(2);
    const found = await system.find<EchoProtocol>("echo", { deadlineMs });
    expect(found.address.incarnation).toBe(2);
  },
);

test("DL-25 a name that no actor has is refused at once, with the nearest", async () => {
  const { system } = startSystem();
  const finder = await system.spawn<FinderProtocol>({ name: "finder", module: finderModule });
  const echo = await system.spawn<EchoProtocol>({ name: "echo", module: echoModule });
  const reach = (name: string) => finder.ask("reach", { name, value: 1, deadlineMs }, { deadlineMs });
  await expect(reach("ecko")).rejects.toMatchObject({
    code: "ACTOR_UNKNOWN",
    message: "[find ecko] expected the name of a living actor, got ecko (did you mean echo?)",
  });
  await system.stopActor(echo);
  await expect(reach("echo")).rejects.toMatchObject({ code: "ACTOR_UNKNOWN" });
});

test("DL-25 a search ends at its deadline", async () => {
  const { system, log } = startSystem();
  const supervisor = await system.supervise({
    name: "echoes",
    strategy: "one_for_one",
    backoff: { firstMs: 60_000, maxMs: 60_000 },
    children: [{ name: "echo", module: echoModule }],
  });
  const finder = await system.spawn<FinderProtocol>({ name: "finder", module: finderModule });
  supervisor.ref<EchoProtocol>("echo").tell("fail", "once");
  await log.until((event) => event.kind === "actor.failed");
  const search = { name: "echo", value: 1, deadlineMs: 50 };
  await expect(finder.ask("reach", search, { deadlineMs })).rejects.toMatchObject({ code: "ASK_TIMEOUT" });
  await expect(system.find("echo", { deadlineMs: 50 })).rejects.toMatchObject({ code: "ASK_TIMEOUT" });
});

test("DL-25 parts of a system find each other's actors, and end alone", async () => {
  const { system } = startSystem();
  const heard: string[] = [];
  const part = system.part({ name: "part", onEvent: (event) => heard.push(event.kind) });
  const own = await part.spawn<EchoProtocol>({ name: "own", module: echoModule });
  const finder = await system.spawn<FinderProtocol>({ name: "finder", module: finderModule });
  expect(await finder.ask("reach", { name: "own", value: 3, deadlineMs }, { deadlineMs })).toBe(3);
  expect(part.inspect().map(({ actor }) => actor)).toEqual(["own"]);
  expect(system.inspect().map(({ actor }) => actor)).toEqual(["finder"]);
  await part.stop();
  expect(heard).toEqual(["actor.started", "actor.stopped"]);
  await expect(own.ask("echo", 1, { deadlineMs })).rejects.toMatchObject({ code: "ACTOR_DOWN" });
  await expect(part.spawn({ name: "late", module: echoModule })).rejects.toMatchObject({
    code: "SYSTEM_STOPPED",
  });
  expect(await finder.ask("ticks", null, { deadlineMs })).toEqual([]);
});
