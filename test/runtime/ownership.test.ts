import { expect, onTestFinished, test } from "vitest";
import { FakeClock } from "../fixtures/fake-clock.ts";
import type { OwnerInit, OwnerProtocol } from "./actors/owner.ts";
import { actorModule, startSystem } from "./start-system.ts";

const deadlineMs = 20_000;

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
  const tree = "r r0 r00 r000 r001 r01 r010 r011 r1 r10 r100 r101 r11 r110 r111".split(" ");
  expect(names()).toEqual(tree);
  await root.ask("stopBelow", "r10", { deadlineMs });
  await log.until(() => !names().some((name) => name.startsWith("r10")));
  expect(names()).toEqual(tree.filter((name) => !name.startsWith("r10")));
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

test("DL-14 an owned actor that not even force can end is named in a warning, and the program goes on", async () => {
  const clock = new FakeClock();
  const { system, log } = startSystem({ clock });
  const root = await system.spawn<OwnerProtocol, OwnerInit>({
    name: "s",
    module: actorModule("owner"),
    init: { depth: 1, placement: "thread" },
  });
  root.tell("sleepBelow", "s0");
  await log.untilEmitted("s0 sleeps");
  const warned = Promise.withResolvers<Error>();
  const onWarning = (warning: Error & { fields?: { actor: string } }): void => {
    if (warning.fields?.actor === "s0#1") warned.resolve(warning);
  };
  process.on("warning", onWarning);
  onTestFinished(() => void process.off("warning", onWarning));
  await system.stopActor(root);
  // The deadline of its stop, then the grace of its termination.
  clock.advance(5_000);
  clock.advance(5_000);
  expect(await warned.promise).toMatchObject({ code: "ACTOR_STUCK" });
  expect(log.unhandled).toEqual([]);
  // Its native call returns at last, and then the thread ends as ordered.
  await system.stop();
});
