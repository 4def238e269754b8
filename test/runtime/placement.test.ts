import { describe, expect, test } from "vitest";
import type { Placement } from "../../src/runtime/index.ts";
import type { EchoProtocol } from "./actors/echo.ts";
import { Handle } from "./actors/preload.ts";
import { actorModule, startSystem } from "./start-system.ts";

const deadlineMs = 20_000;
const echoModule = actorModule("echo");
const pairs: readonly (readonly [Placement, Placement])[] = [
  ["main", "main"],
  ["main", "thread"],
  ["thread", "main"],
  ["thread", "thread"],
  ["main", "process"],
  ["process", "main"],
  ["thread", "process"],
  ["process", "thread"],
  ["process", "process"],
];

describe.each(pairs)("from %s to %s", (near, far) => {
  test("DL-19 the same calls mean the same wherever the actors live", async () => {
    const { system } = startSystem({ preload: new URL("./actors/preload.ts", import.meta.url) });
    const asker = await system.spawn<EchoProtocol>({ name: "asker", module: echoModule, placement: near });
    const to = await system.spawn<EchoProtocol>({ name: "answerer", module: echoModule, placement: far });
    const values = [1, "text", null, { deep: [{ list: [1, 2, 3] }] }, new Float32Array([0.5, -2.25]), 7n];
    for (const value of values) {
      expect(await asker.ask("relay", { to, message: value }, { deadlineMs })).toEqual(value);
    }
    const handle = (await asker.ask("relay", { to, message: new Handle(12) }, { deadlineMs })) as Handle;
    expect(handle).toBeInstanceOf(Handle);
    expect(handle.id).toBe(12);
    const self = (await asker.ask("relay", { to, message: [asker] }, { deadlineMs })) as (typeof asker)[];
    expect(await self[0]?.ask("echo", "through a ref that travelled", { deadlineMs })).toBe(
      "through a ref that travelled",
    );
    const bad = to.ask("refuse", "no", { deadlineMs });
    await expect(bad).rejects.toMatchObject({ code: "ACTOR_THREW", fields: { actor: "answerer#1" } });
  });
});

test.each(["main", "thread"] as const)(
  "DL-19 a message changed after it was sent throws where messages are frozen (%s)",
  async (placement) => {
    const { system } = startSystem();
    const echo = await system.spawn<EchoProtocol>({ name: "echo", module: echoModule, placement });
    const message = { list: [1, 2], block: 0 };
    const answer = echo.ask("echo", message, { deadlineMs });
    expect(() => {
      message.block = 1;
    }).toThrow(TypeError);
    expect(() => message.list.push(3)).toThrow(TypeError);
    expect(await answer).toEqual({ list: [1, 2], block: 0 });
  },
);

test("DL-19 an actor may write to itself", async () => {
  const { system } = startSystem();
  for (const placement of ["main", "thread"] as const) {
    const echo = await system.spawn<EchoProtocol>({
      name: `self-${placement}`,
      module: echoModule,
      placement,
    });
    await echo.ask("noteToSelf", { self: echo, value: 5 }, { deadlineMs });
    await echo.ask("noteToSelf", { self: echo, value: 6 }, { deadlineMs });
    let noted = await echo.ask("noted", null, { deadlineMs });
    while (noted.length < 2) noted = await echo.ask("noted", null, { deadlineMs });
    expect(noted).toEqual([5, 6]);
  }
});

test("what is transferred changes owner instead of being copied", async () => {
  const { system } = startSystem();
  const echo = await system.spawn<EchoProtocol>({ name: "echo", module: echoModule });
  const bytes = new Uint8Array(1 << 16).fill(7);
  echo.tell("note", 0);
  const answer = echo.ask("echo", bytes, { deadlineMs, transfer: [bytes.buffer] });
  echo.tell("note", 1);
  expect(await answer).toHaveLength(1 << 16);
  expect(bytes).toHaveLength(0);
});

test("an actor of the main thread is refused what would block it", async () => {
  const { system } = startSystem();
  const blocker = await system.spawn<{ receiveNothing: { in: null; out: never } }>({
    name: "blocker",
    module: actorModule("blocker"),
    placement: "main",
  });
  await expect(blocker.ask("receiveNothing", null, { deadlineMs })).rejects.toMatchObject({
    code: "BLOCKING_ON_MAIN",
  });
});

test("a thread gets its name and its limits, and what it imports lets no young generation grow", async () => {
  const { system, log } = startSystem();
  const hungry = await system.spawn<EchoProtocol>({
    name: "hungry",
    module: echoModule,
    resourceLimits: { maxOldGenerationSizeMb: 32 },
  });
  expect(await hungry.ask("threadName", null, { deadlineMs })).toBe("hungry");
  expect(await hungry.ask("limits", null, { deadlineMs })).toMatchObject({
    maxOldGenerationSizeMb: 32,
    maxYoungGenerationSizeMb: 12,
  });
  const answer = hungry.ask("hold", null, { deadlineMs });
  hungry.tell("eat", null);
  await expect(answer).rejects.toMatchObject({ code: "ACTOR_DOWN" });
  expect(log.ofKind("actor.failed")[0]?.cause.code).toBe("ERR_WORKER_OUT_OF_MEMORY");
});
