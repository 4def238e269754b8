import { expect, test } from "vitest";
import type { ActorRef } from "../../src/runtime/index.ts";
import { FakeClock } from "../fixtures/fake-clock.ts";
import type { EchoProtocol } from "./actors/echo.ts";
import { actorModule, startSystem } from "./start-system.ts";

test("a start that takes too long is ended and reported", async () => {
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

test("every event about an actor carries its role", async () => {
  const { system, log } = startSystem();
  const role = { role: "rank", index: 3 };
  const rank: ActorRef<EchoProtocol> = await system.spawn({
    name: "third",
    module: actorModule("echo"),
    placement: "main",
    ...role,
  });
  await system.spawn({ name: "nobody", module: actorModule("echo"), placement: "main" });
  expect(system.inspect()).toMatchObject([{ actor: "third", ...role }, { actor: "nobody" }]);
  expect(system.inspect()[1]).not.toHaveProperty("role");
  await system.stopActor(rank);
  const ofThird = log.events.filter((event) => "actor" in event && event.actor === "third");
  expect(ofThird).toMatchObject([
    { kind: "actor.started", ...role },
    { kind: "actor.stopped", ...role },
  ]);
});
