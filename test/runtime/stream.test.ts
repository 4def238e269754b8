import { expect, test, vi } from "vitest";
import { patience } from "../fixtures/patience.ts";
import type { CounterProtocol } from "./actors/counter.ts";
import { actorModule, inProcesses, startSystem } from "./start-system.ts";

const deadlineMs = 20_000;
const module = actorModule("counter");
const numbersTo = (to: number) => Array.from({ length: to }, (_, value) => value);

async function readAll<T>(stream: AsyncIterable<T>): Promise<readonly T[]> {
  const items: T[] = [];
  for await (const item of stream) items.push(item);
  return items;
}

function startCounter(name = "counter") {
  const started = startSystem();
  return { ...started, counter: started.system.spawn<CounterProtocol>({ name, module }) };
}

test("DL-27 a stream arrives completely and in order, on any thread", async () => {
  const started = startCounter();
  const counter = await started.counter;
  const read = await readAll(counter.stream("count", { to: 1_000 }, { deadlineMs }));
  expect(read).toEqual(numbersTo(1_000));
  expect(await readAll(counter.stream("countSlowly", { to: 20 }, { deadlineMs }))).toEqual(numbersTo(20));
  const reader = await started.system.spawn<CounterProtocol>({ name: "reader", module });
  const far = await reader.ask("read", { of: counter, to: 100, leaveAt: -1 }, { deadlineMs });
  expect(far).toEqual(numbersTo(100));
});

test("DL-27 a reader that is slow has at most two windows made for it", async () => {
  const counter = await startCounter().counter;
  let numRead = 0;
  for await (const value of counter.stream("count", { to: 1_000 }, { deadlineMs, window: 8 })) {
    numRead += 1;
    const { numbers } = await counter.ask("made", null, { deadlineMs });
    expect(numbers - value).toBeLessThanOrEqual(16);
    if (numRead === 100) break;
  }
});

test("DL-27 a reader that leaves, or ends, closes the stream", async () => {
  const { system, counter: starting, log } = startCounter();
  const counter = await starting;
  const closed = async (count: number) =>
    await vi.waitFor(
      async () => expect(await counter.ask("made", null, { deadlineMs })).toMatchObject({ closed: count }),
      patience,
    );
  for await (const value of counter.stream("count", { to: 1_000 }, { deadlineMs })) if (value === 40) break;
  await closed(1);
  const reader = await system.spawn<CounterProtocol>({ name: "reader", module });
  reader.tell("fall", { of: counter });
  await log.until((event) => event.kind === "actor.failed");
  await closed(2);
});

test("DL-27 the error of a handler comes after the items before it", async () => {
  const counter = await startCounter().counter;
  const read: number[] = [];
  const reading = async () => {
    for await (const value of counter.stream("count", { to: 50, failAt: 21 }, { deadlineMs }))
      read.push(value);
  };
  await expect(reading()).rejects.toMatchObject({ code: "ACTOR_THREW", message: "no 21" });
  expect(read).toEqual(numbersTo(21));
});

test("DL-27 the end of the actor reaches the reader at once", async () => {
  const { system, counter: starting } = startCounter();
  const counter = await starting;
  const reading = async () => {
    for await (const value of counter.stream("countSlowly", { to: 100_000 }, { deadlineMs }))
      if (value === 20) void system.stopActor(counter, { drain: false });
  };
  await expect(reading()).rejects.toMatchObject({ code: "ACTOR_DOWN" });
});

test("DL-27 an actor answers others between the items of a stream", async () => {
  const counter = await startCounter().counter;
  for await (const value of counter.stream("count", { to: 40 }, { deadlineMs, window: 1 })) {
    const { numbers } = await counter.ask("made", null, { deadlineMs });
    expect(numbers).toBeGreaterThan(value);
  }
});

test("DL-27 a pool's actors answer by streams", async () => {
  const { system } = startSystem();
  const placement = inProcesses() ? "process" : "thread";
  const pool = await system.pool<CounterProtocol>({ name: "counters", module, size: 2, placement });
  const all = [1, 2, 3].map(() => readAll(pool.stream("count", { to: 30 }, { deadlineMs })));
  expect(await Promise.all(all)).toEqual([numbersTo(30), numbersTo(30), numbersTo(30)]);
});

test("DL-27 a stream of a pool's actor is its reader's: it ends with the reader, and not with the pool's router", async () => {
  const { system, log } = startSystem();
  const placement = inProcesses() ? "process" : "thread";
  const pool = await system.pool<CounterProtocol>({ name: "counters", module, size: 1, placement });
  const read: number[] = [];
  for await (const value of pool.stream("count", { to: 40 }, { deadlineMs, window: 1 })) {
    read.push(value);
    if (value !== 5) continue;
    await system.stopActor(pool);
    await log.until(({ kind }) => kind === "actor.restarted");
    // The actor has heard of that end before it hears of the next router.
    expect(await pool.ask("made", null, { deadlineMs })).toMatchObject({ closed: 0 });
  }
  expect(read).toEqual(numbersTo(40));
  const reader = await system.spawn<CounterProtocol>({ name: "reader", module });
  reader.tell("fall", { of: pool });
  await vi.waitFor(
    async () => expect(await pool.ask("made", null, { deadlineMs })).toMatchObject({ closed: 2 }),
    patience,
  );
});

test("an answer that is no stream is refused where one is read", async () => {
  const counter = await startCounter().counter;
  const kind = "notAStream" as "count";
  const reading = readAll(counter.stream(kind, { to: 1 }, { deadlineMs }));
  await expect(reading).rejects.toThrow(
    "[stream notAStream] expected a handler that returns an async iterable, got 7 (make it an async generator, or use ask)",
  );
});
