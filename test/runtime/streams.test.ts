import { expect, test } from "vitest";
import type { SourceProtocol } from "./actors/source.ts";
import { actorModule, startSystem } from "./start-system.ts";

const options = { credits: 4, deadlineMs: 20_000 };

async function spawnSource(placement: "main" | "thread") {
  const { system, log } = startSystem();
  const source = await system.spawn<SourceProtocol>({
    name: "source",
    module: actorModule("source"),
    placement,
  });
  return { system, log, source };
}

test.each(["main", "thread"] as const)(
  "a stream yields every item in order and ends (%s)",
  async (placement) => {
    const { source } = await spawnSource(placement);
    const items: number[] = [];
    for await (const item of source.stream("count", { to: 100 }, options)) items.push(item);
    expect(items).toEqual(Array.from({ length: 100 }, (_, index) => index));
  },
);

test("a source is never more than its credits ahead of the consumer", async () => {
  const { source } = await spawnSource("thread");
  const stream = source.stream("count", { to: 1_000 }, options);
  for (let taken = 1; taken <= 20; taken++) {
    await stream.next();
    const numProduced = await source.ask("produced", null, { deadlineMs: 20_000 });
    expect(numProduced).toBeLessThanOrEqual(taken + options.credits);
  }
  await stream.return?.();
});

test("leaving the loop cancels the stream at its source", async () => {
  const { log, source } = await spawnSource("thread");
  for await (const item of source.stream("count", { to: 1_000_000 }, options)) {
    if (item === 10) break;
  }
  await log.untilEmitted("source closed");
  expect(await source.ask("produced", null, { deadlineMs: 20_000 })).toBeLessThan(20);
});

test("what the source throws reaches the consumer after the items before it", async () => {
  const { source } = await spawnSource("thread");
  const stream = source.stream("breakAt", { item: 3 }, options);
  const items: number[] = [];
  const reading = (async () => {
    for await (const item of stream) items.push(item);
  })();
  await expect(reading).rejects.toMatchObject({ message: "broke at 3", fields: { actor: "source#1" } });
  expect(items).toEqual([0, 1, 2]);
  expect(await stream.next()).toEqual({ done: true, value: undefined });
});

test("a stream breaks with the cause when its source goes down, and with a timeout when it falls silent", async () => {
  const { system, source } = await spawnSource("thread");
  const silent = source.stream("silence", null, { credits: 1, deadlineMs: 10 });
  await expect(silent.next()).rejects.toMatchObject({ code: "ASK_TIMEOUT" });
  const broken = source.stream("silence", null, options);
  const brokenOff = expect(broken.next()).rejects.toMatchObject({ code: "ACTOR_DOWN" });
  await system.stopActor(source);
  await brokenOff;
  const late = source.stream("count", { to: 1 }, options);
  await expect(late.next()).rejects.toMatchObject({ code: "ACTOR_DOWN" });
});

test("several items can be asked for before the first has come", async () => {
  const { source } = await spawnSource("thread");
  const stream = source.stream("count", { to: 3 }, options);
  const results = await Promise.all([stream.next(), stream.next(), stream.next(), stream.next()]);
  expect(results.map(({ done, value }) => (done ? "end" : value))).toEqual([0, 1, 2, "end"]);
});
