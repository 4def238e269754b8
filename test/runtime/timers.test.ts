import { expect, onTestFinished, test, vi } from "vitest";
import { systemClock } from "../../src/runtime/clock.ts";
import { FakeClock } from "../fixtures/fake-clock.ts";
import { patience } from "../fixtures/patience.ts";
import type { FinderProtocol } from "./actors/finder.ts";
import { actorModule, startSystem } from "./start-system.ts";

const deadlineMs = 20_000;
const module = actorModule("finder");

test("DL-28 a timer sends its actor a message once, or again and again until it is cancelled", async () => {
  const clock = new FakeClock();
  const { system } = startSystem({ clock });
  const placement = "main";
  const actor = await system.spawn<FinderProtocol>({ name: "ticker", module, placement });
  const ticks = () => actor.ask("ticks", null, { deadlineMs });
  await actor.ask("start", { kind: "after", ms: 100 }, { deadlineMs });
  await actor.ask("start", { kind: "every", ms: 40 }, { deadlineMs });
  for (let count = 0; count < 10; count++) {
    clock.advance(20);
    await ticks();
  }
  expect((await ticks()).toSorted()).toEqual(["after", ...Array(5).fill("every")]);
  clock.advance(400);
  expect(await ticks()).toHaveLength(16);
  await actor.ask("cancel", null, { deadlineMs });
  clock.advance(400);
  expect(await ticks()).toHaveLength(16);
});

test("DL-28 a timer runs in an actor's own thread, and ends with the actor", async () => {
  const { system, log } = startSystem();
  const actor = await system.spawn<FinderProtocol>({ name: "ticker", module });
  await actor.ask("start", { kind: "every", ms: 5 }, { deadlineMs });
  await vi.waitFor(
    async () => expect((await actor.ask("ticks", null, { deadlineMs })).length).toBeGreaterThan(2),
    patience,
  );
  await system.stopActor(actor);
  expect(log.ofKind("actor.stopped")).toHaveLength(1);
});

test("refuses a timer without a time", async () => {
  const { system } = startSystem();
  const actor = await system.spawn<FinderProtocol>({ name: "ticker", module });
  await expect(actor.ask("start", { kind: "every", ms: 0 }, { deadlineMs })).rejects.toThrow(
    "[every ticker.tick] expected a time in ms, above 0, got 0 (correct the time)",
  );
});

test("a timer may wait for months, or for ever", () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  onTestFinished(() => void vi.useRealTimers());
  const dayMs = 86_400_000;
  const ran: string[] = [];
  systemClock.after(60 * dayMs, () => ran.push("60 days"));
  systemClock.after(Number.POSITIVE_INFINITY, () => ran.push("never"));
  const cancelled = systemClock.after(60 * dayMs, () => ran.push("cancelled"));
  vi.advanceTimersByTime(60 * dayMs - 1);
  expect(ran).toEqual([]);
  cancelled.cancel();
  vi.advanceTimersByTime(1);
  expect(ran).toEqual(["60 days"]);
  vi.advanceTimersByTime(300 * dayMs);
  expect(ran).toEqual(["60 days"]);
});
