import { expect, test } from "vitest";
import { ActorDown, AskTimeout } from "../../src/runtime/index.ts";
import { FakeClock } from "../fixtures/fake-clock.ts";
import type { EchoProtocol } from "./actors/echo.ts";
import { actorModule, closedGate, startSystem } from "./start-system.ts";

const echoModule = actorModule("echo");
const deadlineMs = 20_000;

test("DL-8 an ask that expired before it was taken up is not handled", async () => {
  const { system, log } = startSystem();
  const echo = await system.spawn<EchoProtocol>({ name: "echo", module: echoModule });
  // Another host knows this one's clock by the packet that took the least time: on a busy machine the first ones may take long.
  for (let packet = 0; packet < 20; packet++) await echo.ask("echo", packet, { deadlineMs });
  const { gate, open } = closedGate();
  const blocked = echo.ask("answerAfter", gate, { deadlineMs });
  const expired = await echo
    .ask("refuse", "handled after all", { deadlineMs: 20 })
    .catch((error: unknown) => error);
  expect(expired).toBeInstanceOf(AskTimeout);
  open();
  expect(await blocked).toBe("late");
  const letter = await log.until((event) => event.kind === "message.undelivered");
  expect(letter).toMatchObject({ reason: "Expired", messageKind: "refuse", from: "system#1", to: "echo#1" });
});

test("DL-8 an answer after the deadline becomes a dead letter", async () => {
  const clock = new FakeClock();
  const { system, log } = startSystem({ clock });
  const echo = await system.spawn<EchoProtocol>({ name: "echo", module: echoModule });
  const { gate, open } = closedGate();
  const ask = echo.ask("answerAfter", gate, { deadlineMs: 60_000 });
  clock.advance(60_000);
  await expect(ask).rejects.toBeInstanceOf(AskTimeout);
  open();
  const letter = await log.until((event) => event.kind === "message.undelivered");
  expect(letter).toMatchObject({
    reason: "Expired",
    messageKind: "answerAfter",
    from: "echo#1",
    to: "system#1",
  });
});

test.each([0, -1, Number.NaN, Number.POSITIVE_INFINITY])(
  "DL-8 refuses an ask that could wait for ever (%d)",
  async (bad) => {
    const { system } = startSystem();
    const echo = await system.spawn<EchoProtocol>({ name: "echo", module: echoModule, placement: "main" });
    await expect(echo.ask("echo", 1, { deadlineMs: bad })).rejects.toMatchObject({
      code: "DEADLINE_INVALID",
    });
  },
);

test.each(["main", "thread"] as const)(
  "DL-9 every open ask rejects with the cause when its target fails (%s)",
  async (placement) => {
    const { system } = startSystem();
    const echo = await system.spawn<EchoProtocol>({ name: "echo", module: echoModule, placement });
    const asks = Array.from({ length: 1_000 }, () => echo.ask("hold", null, { deadlineMs }));
    const outcomes = Promise.allSettled(asks);
    echo.tell("fail", "out of luck");
    for (const outcome of await outcomes) {
      expect(outcome).toMatchObject({
        status: "rejected",
        reason: { code: "ACTOR_DOWN", cause: { message: "out of luck" } },
      });
    }
  },
);

test("DL-9 asks reject when the target leaves without a word, and when it fails outside a handler", async () => {
  const { system } = startSystem();
  const leaver = await system.spawn<EchoProtocol>({ name: "leaver", module: echoModule });
  const open = leaver.ask("hold", null, { deadlineMs });
  leaver.tell("exit", 3);
  await expect(open).rejects.toMatchObject({
    code: "ACTOR_DOWN",
    cause: { message: "its thread ended with exit code 3" },
  });
  const thrower = await system.spawn<EchoProtocol>({ name: "thrower", module: echoModule });
  const other = thrower.ask("hold", null, { deadlineMs });
  thrower.tell("failLater", "in a timer");
  await expect(other).rejects.toMatchObject({ code: "ACTOR_DOWN", cause: { message: "in a timer" } });
});

test("DL-9 an ask to an actor that is dead already rejects at once, from any thread", async () => {
  const { system } = startSystem();
  const dead = await system.spawn<EchoProtocol>({ name: "dead", module: echoModule });
  const asker = await system.spawn<EchoProtocol>({ name: "asker", module: echoModule });
  await system.stopActor(dead);
  await expect(dead.ask("echo", 1, { deadlineMs })).rejects.toBeInstanceOf(ActorDown);
  const relayed = asker.ask("relay", { to: dead, message: 1 }, { deadlineMs });
  await expect(relayed).rejects.toMatchObject({ code: "ACTOR_DOWN", fields: { actor: "dead#1" } });
});

test("an error of a handler reaches the asker with its code, fields, actor and cause", async () => {
  const { system } = startSystem();
  const echo = await system.spawn<EchoProtocol>({ name: "echo", module: echoModule });
  await expect(echo.ask("refuse", "not today", { deadlineMs })).rejects.toMatchObject({
    code: "ACTOR_THREW",
    message: "not today",
    fields: { actor: "echo#1" },
  });
  await expect(echo.ask("echo", "still alive", { deadlineMs })).resolves.toBe("still alive");
});
