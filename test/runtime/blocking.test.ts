import { expect, test } from "vitest";
import type { BlockerProtocol } from "./actors/blocker.ts";
import type { EchoProtocol } from "./actors/echo.ts";
import { actorModule, startSystem } from "./start-system.ts";

const deadlineMs = 30_000;

async function pair(window?: number) {
  const { system, log } = startSystem(window === undefined ? {} : { messaging: { window } });
  const echo = await system.spawn<EchoProtocol>({ name: "echo", module: actorModule("echo") });
  const blocker = await system.spawn<BlockerProtocol>({ name: "blocker", module: actorModule("blocker") });
  return { system, log, echo, blocker };
}

test("an actor that never returns to its loop takes its answers by waiting", async () => {
  const { echo, blocker } = await pair();
  expect(await blocker.ask("sum", { from: echo, count: 1_000 }, { deadlineMs })).toBe(499_500);
  expect(await blocker.ask("sumAhead", { from: echo, count: 1_000 }, { deadlineMs })).toBe(499_500);
});

test("two blocking actors can serve and ask one another's partners at once", async () => {
  const { system, echo, blocker } = await pair();
  const other = await system.spawn<BlockerProtocol>({ name: "other", module: actorModule("blocker") });
  const sums = [blocker, other].map((actor) => actor.ask("sum", { from: echo, count: 500 }, { deadlineMs }));
  expect(await Promise.all(sums)).toEqual([124_750, 124_750]);
});

test("a blocking receive takes messages of the actor's own protocol in order and answers them", async () => {
  const { blocker } = await pair();
  const served = blocker.ask("serve", { count: 3 }, { deadlineMs });
  const answers = [10, 20, 30].map((value) => blocker.ask("add", value, { deadlineMs }));
  expect(await Promise.all(answers)).toEqual([10, 30, 60]);
  expect(await served).toBe(60);
  expect(await blocker.ask("add", 5, { deadlineMs })).toBe(5);
});

test("the control lane interrupts an actor that polls", async () => {
  const { log, blocker } = await pair();
  const interrupted = blocker.ask("pollUntilAborted", null, { deadlineMs });
  await log.untilEmitted("polling");
  blocker.tell("abort", "another rank failed");
  expect(await interrupted).toBe("aborted: another rank failed");
  expect(await blocker.ask("add", 5, { deadlineMs })).toBe(5);
});

test("messages that a blocking call takes in outside any handler are handled all the same", async () => {
  const { log, blocker } = await pair();
  const polled = blocker.ask("pollLater", null, { deadlineMs });
  expect(await polled).toBeNull();
  await log.untilEmitted("polling later");
  expect(await blocker.ask("add", 7, { deadlineMs: 5_000 })).toBe(7);
  await log.untilEmitted("polled later");
});

test("every blocking call ends at its deadline with an error of its own", async () => {
  const { blocker, echo } = await pair();
  const receiving = blocker.ask("receiveNothing", null, { deadlineMs });
  await expect(receiving).rejects.toMatchObject({ code: "RECEIVE_TIMEOUT", fields: { kinds: ["add"] } });
  const asking = blocker.ask("askInVain", { on: echo }, { deadlineMs });
  await expect(asking).rejects.toMatchObject({
    code: "ASK_TIMEOUT",
    fields: { target: "echo#1", kind: "hold" },
  });
});

test("an actor that blocks for an answer hears at once that the other is gone", async () => {
  const { log, blocker, echo, system } = await pair();
  const down = new Promise((resolve) => system.watch(blocker, resolve));
  blocker.tell("hang", { on: echo, forAnswer: true });
  await log.untilEmitted("hangs");
  echo.tell("fail", "the other failed");
  expect(await down).toMatchObject({
    reason: "failed",
    cause: { code: "ACTOR_DOWN", actor: "echo#1", cause: { message: "the other failed" } },
  });
});

test("a blocking sender out of credit waits for it, and sends what it tells at once", async () => {
  const { blocker, echo } = await pair(16);
  await blocker.ask("tellMany", { to: echo, count: 1_000 }, { deadlineMs });
  let noted = await echo.ask("noted", null, { deadlineMs });
  while (noted.length < 1_000) noted = await echo.ask("noted", null, { deadlineMs });
  expect(noted).toEqual(Array.from({ length: 1_000 }, (_, index) => index));
});

test("lazy messages and questions leave in their order, with a wait or the end of the turn", async () => {
  const { blocker, echo } = await pair();
  const before = await blocker.ask("tellLazily", { to: echo, count: 3 }, { deadlineMs });
  expect(before).toEqual([0, 1, 2]);
  let noted = await echo.ask("noted", null, { deadlineMs });
  while (noted.length < 4) noted = await echo.ask("noted", null, { deadlineMs });
  expect(noted).toEqual([0, 1, 2, 3]);
});
