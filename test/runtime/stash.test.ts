import { expect, test } from "vitest";
import type { StasherProtocol } from "./actors/stasher.ts";
import { actorModule, startSystem } from "./start-system.ts";

const deadlineMs = 20_000;

test("DL-18 what an actor cannot handle yet waits in its stash, and comes back before all else in order", async () => {
  const { system } = startSystem();
  const stasher = await system.spawn<StasherProtocol>({
    name: "stasher",
    module: actorModule("stasher"),
    placement: "main",
  });
  const early = ["one", "two", "three"].map((text) => stasher.ask("work", text, { deadlineMs }));
  stasher.tell("open", null);
  const late = stasher.ask("work", "four", { deadlineMs });
  expect(await Promise.all([...early, late])).toEqual([
    "one",
    "one two",
    "one two three",
    "one two three four",
  ]);
  expect(system.deadLetters.count()).toBe(0);
});

test("DL-18 a stash holds its capacity and refuses one more", async () => {
  const { system } = startSystem();
  const stasher = await system.spawn<StasherProtocol>({
    name: "stasher",
    module: actorModule("stasher"),
    placement: "main",
  });
  const held = Array.from({ length: 3 }, () => stasher.ask("work", "early", { deadlineMs }));
  await expect(stasher.ask("work", "one too many", { deadlineMs })).rejects.toMatchObject({
    code: "STASH_FULL",
  });
  stasher.tell("open", null);
  expect(await held[2]).toBe("early early early");
});

test("DL-18 what is stashed when the actor ends becomes dead letters", async () => {
  const { system, log } = startSystem();
  const stasher = await system.spawn<StasherProtocol>({ name: "stasher", module: actorModule("stasher") });
  const held = stasher.ask("work", "early", { deadlineMs });
  const ended = system.stopActor(stasher);
  await expect(held).rejects.toMatchObject({ code: "ACTOR_DOWN" });
  await ended;
  await log.until((event) => event.kind === "message.undelivered");
  expect(system.deadLetters.latest()).toMatchObject([
    { reason: "Stopped", messageKind: "work", to: "stasher#1" },
  ]);
});
