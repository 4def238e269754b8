import { expect, test } from "vitest";
import type { BlockerProtocol } from "./actors/blocker.ts";
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
    expect(of("last")).toMatchObject({ messageKind: "echo", from: "middle#1", awaited: false });
    expect(of("first")).toMatchObject({ messageKind: "relayFar", from: "system#1", awaited: true });
    // On one clock, whatever thread or process: sent, received, taken up, done; the inner within the outer.
    for (const span of spans) {
      const { sentMs, receivedMs, beginMs, endMs } = span;
      expect([sentMs, receivedMs, beginMs, endMs].toSorted((a, b) => a - b)).toEqual([
        sentMs,
        receivedMs,
        beginMs,
        endMs,
      ]);
    }
    expect(of("last")?.sentMs).toBeGreaterThanOrEqual(of("middle")?.beginMs as number);
    expect(of("first")?.endMs).toBeGreaterThanOrEqual(of("last")?.endMs as number);
  }
  expect(new Set(log.ofKind("span.finished").map(({ traceId }) => traceId)).size).toBe(2);
});

test("DL-21 every n-th call is traced, completely, and no other", async () => {
  const { system, log } = startSystem({ messaging: { traceEvery: 5 } });
  const to = await system.spawn<EchoProtocol>({ name: "to", module: actorModule("echo") });
  const relay = await system.spawn<EchoProtocol>({
    name: "relay",
    module: actorModule("echo"),
    placement: "main",
  });
  for (let call = 0; call < 20; call++) await relay.ask("relay", { to, message: call }, { deadlineMs });
  await log.until(() => log.ofKind("span.finished").length === 2 * 4);
  const spans = log.ofKind("span.finished");
  const relayed = spans.filter(({ actor }) => actor === "relay");
  expect(relayed).toHaveLength(4);
  for (const { spanId } of relayed) expect(spans.some(({ parentId }) => parentId === spanId)).toBe(true);
});

test("DL-21 what begins together is one trace over all threads it touches, or none of it is traced", async () => {
  const { system, log } = startSystem({ messaging: { traceEvery: 2 } });
  const module = actorModule("echo");
  const echoes = await Promise.all(
    ["one", "two", "three"].map((name) => system.spawn<EchoProtocol>({ name, module })),
  );
  const last = await system.spawn<EchoProtocol>({ name: "last", module });
  const round = () =>
    system.begin("round", () =>
      Promise.all(echoes.map((echo) => echo.ask("relay", { to: last, message: 1 }, { deadlineMs }))),
    );
  for (let count = 0; count < 4; count++) await round();
  await log.until(() => log.ofKind("span.finished").length === 2 * 7);
  const byTrace = Map.groupBy(log.ofKind("span.finished"), ({ traceId }) => traceId);
  expect(byTrace.size).toBe(2);
  for (const spans of byTrace.values()) {
    const root = spans.filter(({ parentId }) => parentId === undefined);
    expect(root).toMatchObject([{ actor: "system", messageKind: "round", awaited: true }]);
    const known = new Set(spans.map(({ spanId }) => spanId));
    expect(spans.filter(({ parentId }) => parentId !== undefined && !known.has(parentId))).toEqual([]);
    expect(new Set(spans.map(({ actor }) => actor))).toEqual(
      new Set(["system", "one", "two", "three", "last"]),
    );
  }
});

test("DL-21 a message that a blocking receive takes is a moment of the trace it came by", async () => {
  const { system, log } = startSystem({ messaging: { traceEvery: 1 } });
  const blocker = await system.spawn<BlockerProtocol>({ name: "blocker", module: actorModule("blocker") });
  const serving = blocker.ask("serve", { count: 1 }, { deadlineMs });
  await system.begin("one", () => blocker.ask("add", 5, { deadlineMs }));
  await serving;
  await log.until(() => log.ofKind("span.finished").length === 3);
  const spans = log.ofKind("span.finished");
  const root = spans.find(({ messageKind }) => messageKind === "one");
  const taken = spans.find(({ messageKind }) => messageKind === "add");
  expect(taken).toMatchObject({ actor: "blocker", traceId: root?.traceId, parentId: root?.spanId });
  expect(taken?.beginMs).toBeGreaterThanOrEqual(taken?.receivedMs as number);
});

test("DL-21 nothing is traced unless asked for", async () => {
  const { system, log } = startSystem();
  const echo = await system.spawn<EchoProtocol>({ name: "echo", module: actorModule("echo") });
  await echo.ask("echo", 1, { deadlineMs });
  await system.stopActor(echo);
  expect(log.ofKind("span.finished")).toEqual([]);
});
