import { expect, it } from "vitest";
import { Stalls } from "../../../src/actors/trainer/stalls/stalls.ts";
import type { ActorInspection } from "../../../src/runtime/index.ts";

/** How long an actor may show no progress after steps that took so long. */
function patienceMs(leastMs: number, durationsMs: readonly number[]): number {
  const stalls = new Stalls(leastMs, 60_000);
  for (const durationMs of durationsMs) stalls.stepTook(durationMs);
  return stalls.afterMs;
}

it("the first step has the time of any piece of work, and no rank is named before the run's own bound", () => {
  expect(patienceMs(1_000, [])).toBe(60_000);
  expect(patienceMs(90_000, [])).toBe(90_000);
  expect(patienceMs(1_000, [10])).toBe(1_000);
});

it("the stall limit is five times the longest step while steps are few", () => {
  expect(patienceMs(100, [600, ...Array<number>(18).fill(50)])).toBe(5 * 600);
});

it("the stall limit ignores one long step in twenty: a generation's slow first step does not raise it for the next hundred", () => {
  expect(patienceMs(100, [600, ...Array<number>(19).fill(50)])).toBe(5 * 50);
  expect(patienceMs(100, [600, 700, ...Array<number>(37).fill(50)])).toBe(5 * 600);
  expect(patienceMs(100, [...Array<number>(5).fill(600), ...Array<number>(95).fill(50)])).toBe(5 * 50);
  expect(patienceMs(100, [...Array<number>(6).fill(600), ...Array<number>(94).fill(50)])).toBe(5 * 600);
});

it("an actor that seems idle in the middle of its work is named, and one that is being prepared is not", () => {
  const stalls = new Stalls(1_000, 60_000);
  const shard: ActorInspection = {
    actor: "one of them",
    role: "shard",
    index: 1,
    incarnation: 1,
    host: 0,
    pid: process.pid,
    state: "idle",
    ageMs: 0,
    handling: undefined,
    waitingFor: undefined,
    unresponsiveMs: undefined,
    numQueued: 0,
    numHandled: 9,
    op: { name: "reduce", block: "h.0", sequence: 4, ageMs: 0 },
    call: undefined,
    collective: undefined,
  };
  expect(stalls.isToBlame(shard)).toBe(false);
  expect(stalls.isToBlame({ ...shard, unresponsiveMs: 5 })).toBe(true);
  expect(stalls.isToBlame({ ...shard, unresponsiveMs: 5, op: undefined })).toBe(false);
  // A name alone does not make an actor one of the group.
  expect(stalls.isToBlame({ ...shard, actor: "shard-1", role: "job-loader", unresponsiveMs: 5 })).toBe(false);
});
