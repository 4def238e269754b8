import { expect, test } from "vitest";
import { ActorRef, type RuntimeEvent } from "../../src/runtime/index.ts";
import type { EchoProtocol } from "./actors/echo.ts";
import type { SinkInit, SinkProtocol } from "./actors/sink.ts";
import { actorModule, closedGate, startSystem } from "./start-system.ts";

const deadlineMs = 20_000;
const undelivered = (event: RuntimeEvent): boolean => event.kind === "message.undelivered";

test("DL-17 NoSuchActor: the address never belonged to anyone", async () => {
  const { system, log } = startSystem();
  const relay = await system.spawn<EchoProtocol>({ name: "relay", module: actorModule("echo") });
  const nobody = new ActorRef<EchoProtocol>(
    {
      tell: () => true,
      ask: () => Promise.resolve(),
      ready: () => Promise.resolve(),
    },
    { address: { system: "", uid: 4711, name: "nobody", incarnation: 1, lanes: {} } },
  );
  const asked = relay.ask("relay", { to: nobody, message: 1 }, { deadlineMs });
  await expect(asked).rejects.toMatchObject({
    code: "ACTOR_DOWN",
    message: expect.stringContaining("expected a living actor, got nobody#1, which never existed ("),
  });
  expect(await log.until(undelivered)).toMatchObject({
    reason: "NoSuchActor",
    from: "relay#1",
    to: "nobody#1",
    messageKind: "echo",
  });
});

test("DL-17 Stopped: the actor has ended", async () => {
  const { system, log } = startSystem();
  const echo = await system.spawn<EchoProtocol>({
    name: "echo",
    module: actorModule("echo"),
    placement: "main",
  });
  await system.stopActor(echo);
  echo.tell("note", 1);
  expect(await log.until(undelivered)).toMatchObject({
    reason: "Stopped",
    from: "system#1",
    to: "echo#1",
    messageKind: "note",
  });
});

test("DL-17 Expired: the question was taken up too late", async () => {
  const { system, log } = startSystem();
  const echo = await system.spawn<EchoProtocol>({ name: "echo", module: actorModule("echo") });
  const { gate, open } = closedGate();
  const blocked = echo.ask("answerAfter", gate, { deadlineMs });
  await expect(echo.ask("echo", 1, { deadlineMs: 5 })).rejects.toMatchObject({ code: "ASK_TIMEOUT" });
  open();
  await blocked;
  expect(await log.until(undelivered)).toMatchObject({ reason: "Expired", messageKind: "echo" });
});

test("DL-17 Overflow: telemetry ran over its bound", async () => {
  const { system, log } = startSystem({ messaging: { window: 4, telemetryCapacity: 4 } });
  const sink = await system.spawn<SinkProtocol, SinkInit>({
    name: "sink",
    module: actorModule("sink"),
    init: {},
    placement: "main",
  });
  for (let value = 0; value < 20; value++) sink.tell("sample", value);
  expect(await log.until(undelivered)).toMatchObject({ reason: "Overflow", count: 12, to: "sink#1" });
  expect(system.deadLetters.count("Overflow")).toBe(12);
});

test.each(["main", "thread"] as const)(
  "DL-17 Undeserialisable: the message cannot be copied, and those beside it still arrive (%s)",
  async (placement) => {
    const { system, log } = startSystem();
    const echo = await system.spawn<EchoProtocol>({ name: "echo", module: actorModule("echo"), placement });
    echo.tell("note", 1);
    const bad = echo.ask("echo", () => "a function", { deadlineMs });
    echo.tell("note", 2);
    await expect(bad).rejects.toMatchObject({ code: "MESSAGE_UNSENDABLE" });
    expect(await echo.ask("noted", null, { deadlineMs })).toEqual([1, 2]);
    expect(await log.until(undelivered)).toMatchObject({
      reason: "Undeserialisable",
      messageKind: "echo",
      to: "echo#1",
    });
  },
);

test("DL-17 an answer that cannot be copied is reported to the asker", async () => {
  const { system } = startSystem();
  const echo = await system.spawn<EchoProtocol>({ name: "echo", module: actorModule("echo") });
  await expect(echo.ask("echo", Symbol.iterator, { deadlineMs })).rejects.toMatchObject({
    code: "MESSAGE_UNSENDABLE",
  });
  await expect(echo.ask("unsendable", null, { deadlineMs })).rejects.toMatchObject({
    code: "MESSAGE_UNSENDABLE",
  });
  await expect(echo.ask("unencodable", null, { deadlineMs })).rejects.toMatchObject({
    code: "MESSAGE_UNSENDABLE",
  });
  expect(await echo.ask("echo", "still alive", { deadlineMs })).toBe("still alive");
});

test("DL-17 an answer that cannot be copied leaves its sender's own questions open", async () => {
  const { system } = startSystem();
  const module = actorModule("echo");
  const asker = await system.spawn<EchoProtocol>({ name: "asker", module });
  const answerer = await system.spawn<EchoProtocol>({ name: "answerer", module });
  const silent = await system.spawn<EchoProtocol>({ name: "silent", module });
  // Both actors count their questions: these two have the same id.
  const open = answerer.ask("relayHold", { to: silent }, { deadlineMs }).catch((error: unknown) => error);
  await expect(asker.ask("relayUnsendable", { to: answerer }, { deadlineMs })).rejects.toMatchObject({
    code: "MESSAGE_UNSENDABLE",
  });
  silent.tell("fail", "out of luck");
  expect(await open).toMatchObject({ code: "ACTOR_DOWN", cause: { message: "out of luck" } });
});

test("DL-17 an answer whose asker has ended becomes a dead letter, wherever the answer was", async () => {
  const { system, log } = startSystem();
  const answerer = await system.spawn<EchoProtocol>({ name: "answerer", module: actorModule("echo") });
  const asker = await system.spawn<EchoProtocol>({ name: "asker", module: actorModule("echo") });
  const { gate, open } = closedGate();
  asker.tell("askTwiceAndBlock", { of: answerer, first: "sent", second: gate });
  // The first answer lies unread before the asker, the second is given only after its end.
  await log.untilEmitted("asked");
  await system.stopActor(asker, { deadlineMs: 50 });
  open();
  await log.until(() => system.deadLetters.count("Stopped") === 2);
  const letters = system.deadLetters.latest(({ from }) => from === "answerer#1");
  expect(letters).toMatchObject([
    { reason: "Stopped", messageKind: "echo", to: "asker#1" },
    { reason: "Stopped", messageKind: "answerAfter", to: "asker#1" },
  ]);
});

test("DL-17 WrongProtocol: the actor has no handler for the kind", async () => {
  const { system, log } = startSystem();
  const echo = await system.spawn<EchoProtocol & { sing: { in: null; out: null } }>({
    name: "echo",
    module: actorModule("echo"),
  });
  await expect(echo.ask("sing", null, { deadlineMs })).rejects.toMatchObject({
    code: "KIND_UNKNOWN",
    fields: { kind: "sing" },
  });
  expect(await log.until(undelivered)).toMatchObject({
    reason: "WrongProtocol",
    messageKind: "sing",
    to: "echo#1",
  });
});

test("DL-17 dead letters can be counted and looked up, and what they carried is handed over for release", async () => {
  const { system } = startSystem({ preload: new URL("./actors/preload.ts", import.meta.url) });
  const echo = await system.spawn<EchoProtocol>({ name: "echo", module: actorModule("echo") });
  await system.stopActor(echo);
  const { released } = await import("./actors/preload.ts");
  released.length = 0;
  for (let value = 0; value < 3; value++) echo.tell("note", value);
  expect(system.deadLetters.count()).toBe(3);
  expect(system.deadLetters.latest(({ messageKind }) => messageKind === "note")).toHaveLength(3);
  expect(released).toEqual([0, 1, 2]);
});
