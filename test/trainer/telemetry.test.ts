import { afterAll, describe, expect, it } from "vitest";
import type { TroupeEvent } from "../../src/index.ts";
import { runTiny, Workspace } from "../fixtures/run-tiny.ts";

const ofKind = <Kind extends TroupeEvent["kind"]>(events: readonly TroupeEvent[], kind: Kind) =>
  events.filter((event): event is Extract<TroupeEvent, { kind: Kind }> => event.kind === kind);

describe("what a run tells", () => {
  const workspace = new Workspace();
  afterAll(() => workspace[Symbol.dispose]());

  it("has the times of every step: what was under way, what was waited for, what was updated", async () => {
    const { events } = await runTiny(workspace, { ranks: 2, zero: 3, steps: 4 });
    const steps = ofKind(events, "step.finished");
    expect(steps).toHaveLength(4);
    for (const step of steps) {
      for (const time of [step.gatherMs, step.reduceMs, step.updateMs]) expect(time).toBeGreaterThan(0);
      expect(step.dataMs).toBeGreaterThanOrEqual(0);
      // What is waited for is a part of what was under way, and the overlap follows from both.
      expect(step.exposedMs).toBeLessThanOrEqual(step.gatherMs + step.reduceMs);
      expect(step.overlap).toBeCloseTo(1 - step.exposedMs / (step.gatherMs + step.reduceMs), 12);
    }
  });

  it("has the memory of each rank by kind, every so many steps", async () => {
    const { events } = await runTiny(workspace, { ranks: 2, steps: 5, memory: { everySteps: 2 } });
    const measured = ofKind(events, "memory.measured");
    expect(measured.map(({ step, rank }) => [step, rank])).toEqual([
      [2, 0],
      [2, 1],
      [4, 0],
      [4, 1],
    ]);
    for (const { byKind } of measured) {
      expect(byKind.optimizer?.liveBytes).toBeGreaterThan(0);
      expect(byKind.activations?.peakBytes).toBeGreaterThan(0);
    }
  });

  it("tells a sink from the first event on, where it is among the options", async () => {
    const kinds: string[] = [];
    const sink = { write: (event: TroupeEvent) => void kinds.push(event.kind), close: async () => {} };
    await runTiny(workspace, { steps: 1, sinks: [sink] });
    expect(kinds[0]).toBe("actor.started");
    expect(kinds).toContain("run.finished");
  });
});
