import { expect, test } from "vitest";
import type { EchoProtocol } from "./actors/echo.ts";
import type { SenderProtocol } from "./actors/sender.ts";
import type { SinkInit, SinkProtocol } from "./actors/sink.ts";
import { actorModule, closedGate, startSystem } from "./start-system.ts";

const deadlineMs = 20_000;

test("DL-6 control overtakes a flood of telemetry, which is bounded and counted", async () => {
  const { system, log } = startSystem({ messaging: { window: 64, telemetryCapacity: 100 } });
  const sink = await system.spawn<SinkProtocol, SinkInit>({
    name: "sink",
    module: actorModule("sink"),
    init: {},
  });
  const sender = await system.spawn<SenderProtocol>({ name: "sender", module: actorModule("sender") });
  const mortal = await system.spawn<EchoProtocol>({ name: "mortal", module: actorModule("echo") });
  sink.tell("watch", mortal);
  await log.untilEmitted({ watching: "mortal" });
  const { gate, open } = closedGate();
  sink.tell("block", gate);
  await log.untilEmitted("blocked");
  await sender.ask("flood", { to: sink, count: 1_000 }, { deadlineMs });
  sink.tell("urgent", "now");
  mortal.tell("fail", "its time had come");
  await log.until((event) => event.kind === "actor.failed");
  open();
  await log.untilEmitted({ down: "mortal", reason: "failed" });
  await log.untilEmitted("last sample");
  const taken = await sender.ask("settle", { to: sink }, { deadlineMs });
  expect(taken[0]?.[0]).toBe("control");
  const samples = taken.filter(([lane]) => lane === "telemetry").map(([, , value]) => value);
  expect(samples.length + system.deadLetters.count("Overflow")).toBe(1_000);
  expect(samples.length).toBe(164);
  expect(samples.slice(64)).toEqual(Array.from({ length: 100 }, (_, index) => 900 + index));
});

test("DL-7 a sender out of credit waits, and no more than the window is under way", async () => {
  const { system, log } = startSystem({ messaging: { window: 64 } });
  const sink = await system.spawn<SinkProtocol, SinkInit>({
    name: "sink",
    module: actorModule("sink"),
    init: {},
  });
  const sender = await system.spawn<SenderProtocol>({ name: "sender", module: actorModule("sender") });
  const { gate, open } = closedGate();
  sink.tell("block", gate);
  await log.untilEmitted("blocked");
  const burst = sender.ask("burst", { to: sink, from: 0, count: 5_000 }, { deadlineMs });
  await log.untilEmitted("waits for credit");
  open();
  const { numWaits, numBeforeWait } = await burst;
  expect(numBeforeWait).toBe(64);
  expect(numWaits).toBeGreaterThan(1);
  expect(await sender.ask("settle", { to: sink }, { deadlineMs })).toHaveLength(5_000);
});

test("DL-7 a sender that ignores its credit is refused once its queue is full", async () => {
  const { system, log } = startSystem({ messaging: { window: 8, outboxCapacity: 16 } });
  const sink = await system.spawn<SinkProtocol, SinkInit>({
    name: "sink",
    module: actorModule("sink"),
    init: {},
  });
  const { gate, open } = closedGate();
  sink.tell("block", gate);
  await log.untilEmitted("blocked");
  const accepted = Array.from({ length: 24 }, (_, value) => sink.tell("item", ["main", value]));
  expect(accepted.filter((atOnce) => atOnce)).toHaveLength(8);
  expect(() => sink.tell("item", ["main", 24])).toThrow(expect.objectContaining({ code: "OUTBOX_FULL" }));
  open();
  await sink.ready();
  expect(await sink.ask("taken", null, { deadlineMs })).toHaveLength(24);
});
