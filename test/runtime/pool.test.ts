import { expect, test, vi } from "vitest";
import type { Route } from "../../src/runtime/index.ts";
import { Router } from "../../src/runtime/pool/route.ts";
import { patience } from "../fixtures/patience.ts";
import type { EchoProtocol } from "./actors/echo.ts";
import { actorModule, closedGate, inProcesses, startSystem } from "./start-system.ts";

const deadlineMs = 20_000;
const module = actorModule("echo");
const placement = inProcesses() ? "process" : "thread";

/** A pool of three actors that echo. */
function startPool({ system }: ReturnType<typeof startSystem>, route?: Route) {
  return system.pool<EchoProtocol>({
    name: "echoes",
    module,
    size: 3,
    placement,
    ...(route !== undefined && { route }),
  });
}

test("DL-26 a pool answers in turn, and its actors have names and indices", async () => {
  const started = startSystem();
  const pool = await startPool(started);
  const names = await Promise.all(
    Array.from({ length: 6 }, () => pool.ask("threadName", null, { deadlineMs })),
  );
  expect(new Set(names)).toEqual(new Set(["echoes-0", "echoes-1", "echoes-2"]));
  expect(names.slice(0, 3)).toEqual(names.slice(3));
  const roles = started.system.inspect().map(({ actor, role, index }) => ({ actor, role, index }));
  expect(roles).toContainEqual({ actor: "echoes-1", role: "echoes", index: 1 });
  expect(roles).toContainEqual({ actor: "echoes", role: "pool", index: undefined });
});

test("DL-26 the least busy actor of a pool is asked first", async () => {
  const pool = await startPool(startSystem(), "least_busy");
  const gates = [closedGate(), closedGate()];
  const held = gates.map(({ gate }) => pool.ask("answerAfter", gate, { deadlineMs }));
  const names = new Set<string>();
  for (let count = 0; count < 5; count++) names.add(await pool.ask("threadName", null, { deadlineMs }));
  expect(names.size).toBe(1);
  for (const { open } of gates) open();
  expect(await Promise.all(held)).toEqual(["late", "late"]);
});

test("DL-26 messages with one key go to one actor, in order", async () => {
  const pool = await startPool(startSystem(), { key: "gate" });
  const route = new Router("echoes", { key: "gate" });
  const three = Array(3).fill({ isLiving: true, numOpen: 0 });
  expect(route.choose({ gate: "a" }, three)).toBe(route.choose({ gate: "a", more: 1 }, three));
  expect(new Set(["a", "b", "c", "d", "e"].map((gate) => route.choose({ gate }, three))).size).toBe(3);
  expect(await pool.ask("echo", { gate: "a" }, { deadlineMs })).toEqual({ gate: "a" });
  await expect(pool.ask("echo", { other: 1 }, { deadlineMs })).rejects.toMatchObject({
    code: "MESSAGE_UNROUTED",
    message:
      "[pool echoes] expected a message with the field gate, by which it is routed, got one without it (add it, or choose another route)",
  });
});

test("DL-26 a statement that a pool cannot route is a dead letter, and no failure of the pool", async () => {
  const started = startSystem();
  const pool = await startPool(started, { key: "gate" });
  const open = pool.ask("echo", { gate: "a" }, { deadlineMs });
  pool.tell("note", { other: 1 } as never);
  pool.tell("note", { gate: 1n } as never);
  expect(await open).toEqual({ gate: "a" });
  expect(await pool.ask("echo", { gate: "b" }, { deadlineMs })).toEqual({ gate: "b" });
  expect(started.system.deadLetters.latest()).toMatchObject(
    Array(2).fill({ reason: "WrongProtocol", messageKind: "note", to: "echoes#1" }),
  );
  expect(started.log.ofKind("actor.failed")).toEqual([]);
});

test("DL-26 a statement for an actor with a full outbox before it is a dead letter, and no failure of the pool", async () => {
  const started = startSystem({ messaging: { window: 1, outboxCapacity: 1 } });
  const pool = await started.system.pool<EchoProtocol>({ name: "echoes", module, size: 1, placement });
  const { gate, open } = closedGate();
  const answers = [pool.ask("answerAfter", gate, { deadlineMs })];
  for (let count = 0; count < 10; count++) {
    await pool.ready();
    answers.push(pool.ask("threadName", null, { deadlineMs }).catch(({ code }) => code));
  }
  await pool.ready();
  pool.tell("note", 1);
  await vi.waitFor(() => expect(started.system.deadLetters.count("Overflow")).toBe(1), patience);
  open();
  expect(new Set(await Promise.all(answers))).toEqual(new Set(["late", "echoes-0", "OUTBOX_FULL"]));
  expect(started.log.ofKind("actor.failed")).toEqual([]);
});

test("DL-26 an actor of a pool that ends is started again: questions are answered or fail at once", async () => {
  const started = startSystem();
  const pool = await startPool(started);
  const held = Array.from({ length: 3 }, () =>
    pool.ask("hold", null, { deadlineMs }).catch((error) => error),
  );
  pool.tell("fail", "out of luck");
  const first = await Promise.race(held);
  expect(first).toMatchObject({ code: "ACTOR_DOWN", cause: { message: "out of luck" } });
  const answers = Array.from({ length: 300 }, (_, index) => pool.ask("echo", index, { deadlineMs }));
  expect(await Promise.all(answers)).toEqual(Array.from({ length: 300 }, (_, index) => index));
  await started.log.until((event) => event.kind === "actor.restarted");
  await vi.waitFor(async () => {
    const names = await Promise.all([1, 2, 3].map(() => pool.ask("threadName", null, { deadlineMs })));
    expect(new Set(names).size).toBe(3);
  }, patience);
});

test("DL-26 a pool of which no actor can be started again fails with the first cause", async () => {
  const { system, log } = startSystem();
  const escalated = Promise.withResolvers<string>();
  const pool = await system.pool<EchoProtocol>({
    name: "echoes",
    module,
    size: 1,
    placement,
    restarts: 0,
    onEscalate: ({ message }) => escalated.resolve(message),
  });
  const open = pool.ask("hold", null, { deadlineMs }).catch((error) => error);
  pool.tell("fail", "for good");
  expect(await escalated.promise).toBe("for good");
  expect(await open).toMatchObject({ code: "ACTOR_DOWN" });
  await expect(pool.ask("echo", 1, { deadlineMs })).rejects.toMatchObject({ code: "ACTOR_DOWN" });
  expect(log.unhandled).toEqual([]);
});

test("DL-26 a pool that is stopped passes on what has arrived, and its ref travels", async () => {
  const started = startSystem();
  const pool = await startPool(started);
  const other = await started.system.spawn<EchoProtocol>({ name: "other", module });
  expect(await other.ask("relay", { to: pool, message: 5 }, { deadlineMs })).toBe(5);
  const answers = Array.from({ length: 50 }, (_, index) => pool.ask("echo", index, { deadlineMs }));
  await Promise.all([...answers, pool.stop()]);
  await expect(pool.ask("echo", 1, { deadlineMs })).rejects.toMatchObject({ code: "ACTOR_DOWN" });
  await expect(startPool(started)).resolves.toBeDefined();
});

test("DL-26 a pool stops while its actors are started again", async () => {
  const { system, log } = startSystem();
  const pool = await system.pool<EchoProtocol>({
    name: "echoes",
    module,
    size: 2,
    placement,
    backoff: { firstMs: 60_000, maxMs: 60_000 },
  });
  pool.tell("fail", "once");
  await log.until((event) => event.kind === "actor.failed");
  await pool.stop();
  await system.stop({ deadlineMs: 2_000 });
  expect(system.inspect()).toEqual([]);
});

test("refuses a pool without actors", async () => {
  const { system } = startSystem();
  await expect(system.pool({ name: "none", module, size: 0 })).rejects.toThrow(
    "[pool none] expected size to be a whole number from 1, got 0 (correct the option)",
  );
});
