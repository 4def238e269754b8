import { afterAll, describe, expect, it } from "vitest";
import type { TroupeEvent } from "../../../src/entries/index.ts";
import { runTiny, Workspace } from "../../fixtures/run-tiny.ts";

const ofKind = <Kind extends TroupeEvent["kind"]>(events: readonly TroupeEvent[], kind: Kind) =>
  events.filter((event): event is Extract<TroupeEvent, { kind: Kind }> => event.kind === kind);

describe("what a run tells", () => {
  const workspace = new Workspace();
  afterAll(() => workspace[Symbol.dispose]());

  it("every step has its times: of communication, of waits for it, and of updates", async () => {
    const { events } = await runTiny(workspace, { ranks: 2, zero: 3, steps: 4 });
    const steps = ofKind(events, "step.finished");
    expect(steps).toHaveLength(4);
    for (const step of steps) {
      for (const time of [step.gatherMs, step.reduceMs, step.updateMs]) expect(time).toBeGreaterThan(0);
      expect(step.dataMs).toBeGreaterThanOrEqual(0);
      // Exposed time is a part of the time of communication, and the overlap follows from both.
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

  it("has histograms of all parameters and gradients, the same however they are split", async () => {
    const job = { histograms: { everySteps: 2 }, steps: 3 };
    const one = await runTiny(workspace, { ...job, ranks: 1 });
    const split = await runTiny(workspace, { ...job, ranks: 2, tp: 2 }, { vocab: 256 });
    const of = (outcome: typeof one) => ofKind(outcome.events, "histogram.measured");
    expect(new Set(of(one).map(({ step }) => step))).toEqual(new Set([2]));
    expect(of(split).map(({ name, of }) => [name, of])).toEqual(of(one).map(({ name, of }) => [name, of]));
    for (const [place, histogram] of of(one).entries()) {
      const { counts, limits, min, max, numValues, sum, sumOfSquares } = histogram;
      expect(counts.reduce((total, count) => total + count, 0)).toBe(numValues);
      expect(limits).toEqual(limits.toSorted((a, b) => a - b));
      expect(limits).toHaveLength(counts.length);
      expect(limits.at(-1)).toBeGreaterThanOrEqual(max);
      expect(limits[0]).toBeGreaterThanOrEqual(min);
      const other = of(split)[place];
      expect(other?.numValues).toBe(numValues);
      // A split model's sums are rounded in another order; weights have moved by AdamW, which divides by small roots.
      expect(other?.sumOfSquares).toBeCloseTo(sumOfSquares, 3);
      expect(other?.sum).toBeCloseTo(sum, 1);
    }
    const wte = of(one).find(({ name, of }) => name === "transformer.wte.weight" && of === "weights");
    expect(wte?.numValues).toBe(256 * 32);
  });

  it.each(["thread", "process"] as const)(
    "makes one connected trace of a step, over all threads it touches (placement %s)",
    async (placement) => {
      const { events } = await runTiny(workspace, { ranks: 2, zero: 3, steps: 3, trace: true, placement });
      const handled = ofKind(events, "message.handled");
      const roots = handled.filter(
        ({ messageKind, parentId }) => messageKind === "step" && parentId === undefined,
      );
      expect(roots.map(({ actor }) => actor)).toEqual(["system", "system", "system"]);
      const spans = handled.filter(({ traceId }) => traceId === roots[0]?.traceId);
      const bySpan = new Map(spans.map((span) => [span.spanId, span]));
      for (const { spanId, parentId, from, sentMs, receivedMs, beginMs, endMs } of spans) {
        // Nothing is handled before it was sent, nor sent before what sends it began: one clock for all threads.
        expect(
          [sentMs, receivedMs, beginMs, endMs].every((time, index, all) => time >= (all[index - 1] ?? 0)),
        ).toBe(true);
        if (spanId === roots[0]?.spanId) continue;
        const parent = bySpan.get(parentId ?? "");
        expect(`${parent?.actor}#${parent?.incarnation}`).toBe(from);
        expect(sentMs).toBeGreaterThanOrEqual(parent?.beginMs ?? Number.POSITIVE_INFINITY);
      }
      const of = (actor: string) =>
        spans.filter((span) => span.actor === actor).map((span) => span.messageKind);
      for (const rank of [0, 1]) {
        expect(of(`rank-${rank}`)).toContain("step");
        expect(of(`shard-${rank}`)).toEqual(
          expect.arrayContaining(["begin", "gather", "reduce", "contribute", "finish"]),
        );
      }
      expect(of("feeder")).toContain("next");
      expect(ofKind(events, "events.dropped")).toEqual([]);
    },
  );

  it("traces every n-th step and nothing of the others, if that is asked for", async () => {
    const { events } = await runTiny(workspace, { ranks: 2, steps: 6, traceEvery: 4 });
    const handled = ofKind(events, "message.handled");
    const steps = handled.filter(({ messageKind, actor }) => messageKind === "step" && actor === "rank-0");
    expect(steps.length).toBeGreaterThan(0);
    expect(steps.length).toBeLessThan(3);
    expect(ofKind(events, "activity.finished")).toEqual([]);
  });

  it("reports what stages do with micro-batches, and when they are idle", async () => {
    const { events } = await runTiny(workspace, { ranks: 2, pp: 2, accumulation: 2, steps: 2, trace: true });
    const activities = ofKind(events, "activity.finished").filter(({ step }) => step === 1);
    for (const actor of ["rank-0", "rank-1"]) {
      const mine = activities.filter((activity) => activity.actor === actor);
      const order = mine.filter(({ activity }) => activity === "forward" || activity === "backward");
      expect(order.map(({ activity, microBatchIndex }) => `${activity} ${microBatchIndex}`)).toEqual(
        actor === "rank-0"
          ? ["forward 0", "forward 1", "backward 0", "backward 1"]
          : ["forward 0", "backward 0", "forward 1", "backward 1"],
      );
      expect(mine.some(({ activity, blockIndex }) => activity === "wait" && blockIndex === -1)).toBe(true);
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
