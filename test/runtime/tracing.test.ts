import { expect, test } from "vitest";
import type { EchoProtocol } from "./actors/echo.ts";
import { actorModule, startSystem } from "./start-system.ts";

const deadlineMs = 20_000;

test("DL-21 one call makes one connected trace over all the threads it touches", async () => {
  const { system, log } = startSystem({ messaging: { traceEvery: 1 } });
  const module = actorModule("echo");
  const last = await system.spawn<EchoProtocol>({ name: "last", module });
  const middle = await system.spawn<EchoProtocol>({ name: "middle", module });
  const first = await system.spawn<EchoProtocol>({ name: "first", module });
  for (let round = 1; round <= 2; round++) {
    await first.ask("relayFar", { via: middle, to: last, message: round }, { deadlineMs });
    await log.until(() => log.ofKind("span.finished").length === 3 * round);
    const spans = log.ofKind("span.finished").slice(-3);
    const of = (actor: string) => spans.find((span) => span.actor === actor);
    expect(new Set(spans.map(({ traceId }) => traceId)).size).toBe(1);
    expect(of("first")?.parentId).toBeUndefined();
    expect(of("middle")?.parentId).toBe(of("first")?.spanId);
    expect(of("last")?.parentId).toBe(of("middle")?.spanId);
    expect(of("last")).toMatchObject({ messageKind: "echo", durationMs: expect.any(Number) });
    expect(of("first")?.durationMs).toBeGreaterThanOrEqual(of("last")?.durationMs as number);
  }
  expect(new Set(log.ofKind("span.finished").map(({ traceId }) => traceId)).size).toBe(2);
});

test("DL-21 of many calls only each so-many-th is traced, whole", async () => {
  const { system, log } = startSystem({ messaging: { traceEvery: 5 } });
  const to = await system.spawn<EchoProtocol>({ name: "to", module: actorModule("echo") });
  const relay = await system.spawn<EchoProtocol>({
    name: "relay",
    module: actorModule("echo"),
    placement: "main",
  });
  for (let call = 0; call < 20; call++) await relay.ask("relay", { to, message: call }, { deadlineMs });
  // The handlers of untraced calls send too, and each so-many-th of those begins a trace as well.
  const isWhole = (): boolean => {
    const spans = log.ofKind("span.finished");
    const relayed = spans.filter(({ actor }) => actor === "relay");
    return (
      relayed.length === 4 && relayed.every(({ spanId }) => spans.some(({ parentId }) => parentId === spanId))
    );
  };
  await log.until(isWhole);
  expect(log.ofKind("span.finished").length).toBeLessThan(20);
});

test("DL-21 nothing is traced unless asked for", async () => {
  const { system, log } = startSystem();
  const echo = await system.spawn<EchoProtocol>({ name: "echo", module: actorModule("echo") });
  await echo.ask("echo", 1, { deadlineMs });
  await system.stopActor(echo);
  expect(log.ofKind("span.finished")).toEqual([]);
});
