import { readFileSync } from "node:fs";
import { afterAll, describe, expect, test } from "vitest";
import { chromeTraceSink, type TraceEvent } from "../../src/tools/sinks/index.ts";
import { stamped } from "../events/samples.ts";
import { runTiny, Workspace } from "../fixtures/run-tiny.ts";

const laneOf = ({ pid, tid }: TraceEvent) => `${pid}/${tid}`;

/** Whether each two slices of a lane lie beside or within each other, to a thousandth of a microsecond. */
function crossings(slices: readonly TraceEvent[]): TraceEvent[] {
  const rounding = 2e-3;
  const open: number[] = [];
  const inOrder = slices.toSorted((a, b) => (a.ts ?? 0) - (b.ts ?? 0) || (b.dur ?? 0) - (a.dur ?? 0));
  return inOrder.filter(({ ts = 0, dur = 0 }) => {
    while ((open.at(-1) ?? Number.POSITIVE_INFINITY) <= ts + rounding) open.pop();
    // A slice that is drawn a microsecond long to be visible may reach beyond its parent.
    const crosses = dur > 1 && ts + dur > (open.at(-1) ?? Number.POSITIVE_INFINITY) + rounding;
    open.push(ts + dur);
    return crosses;
  });
}

describe("the trace sink", () => {
  const workspace = new Workspace();
  afterAll(() => workspace[Symbol.dispose]());

  test("writes a run as lanes of slices that never cross, with an arrow for each message", async () => {
    const path = workspace.path("traces/run.json");
    const options = { ranks: 2, pp: 2, accumulation: 3, steps: 4, memory: { everySteps: 2 } };
    const { error } = await runTiny(
      workspace,
      { ...options, trace: true, sinks: [chromeTraceSink(path)] },
      { batch: 6 },
    );
    expect(error).toBeUndefined();
    const events: TraceEvent[] = JSON.parse(readFileSync(path, "utf8"));
    const slices = events.filter(({ ph }) => ph === "X");
    const lanes = Map.groupBy(slices, laneOf);
    for (const inLane of lanes.values()) expect(crossings(inLane)).toEqual([]);

    const names = new Map(
      events
        .filter(({ name }) => name === "thread_name")
        .map((event) => [laneOf(event), event.args?.name as string]),
    );
    expect([...lanes.keys()].filter((lane) => !names.has(lane))).toEqual([]);
    expect([...names.values()]).toEqual(
      expect.arrayContaining(["conductor", "rank-0", "rank-1", "shard-0", "feeder awaiting"]),
    );
    const processes = events.filter(({ name }) => name === "process_name").map(({ args }) => args?.name);
    expect(processes.toSorted()).toEqual(["rank 0", "rank 1", "run"]);

    const ofRank = slices.filter((event) => names.get(laneOf(event)) === "rank-1" && event.args?.step === 2);
    expect(ofRank.map(({ name }) => name)).toEqual(
      expect.arrayContaining([
        "forward 0",
        "forward 1",
        "forward 2",
        "backward 0",
        "backward 1",
        "backward 2",
        "wait",
      ]),
    );

    const ends = events.filter(({ ph }) => ph === "f");
    const starts = new Map(events.filter(({ ph }) => ph === "s").map((start) => [start.id, start]));
    expect(ends.length).toBeGreaterThan(50);
    const crossing = ends.filter((end) => {
      const start = starts.get(end.id);
      return start !== undefined && laneOf(start) !== laneOf(end);
    });
    expect(crossing.length).toBeGreaterThan(50);
    for (const end of crossing) {
      const start = starts.get(end.id) as TraceEvent;
      expect(start.ts).toBeLessThanOrEqual(end.ts as number);
      // Both ends lie in a slice of their lanes, or a viewer would not draw the arrow.
      for (const { ts = 0, ...at } of [start, end]) {
        const inLane = lanes.get(laneOf(at as TraceEvent)) ?? [];
        const around = inLane.some(
          (slice) => (slice.ts ?? 0) <= ts && ts <= (slice.ts ?? 0) + (slice.dur ?? 0),
        );
        expect(around).toBe(true);
      }
    }

    const counters = Map.groupBy(
      events.filter(({ ph }) => ph === "C"),
      ({ name }) => name,
    );
    expect(counters.get("loss")).toHaveLength(4);
    expect(counters.get("memory")?.map(({ pid }) => pid)).toEqual([1, 2, 1, 2]);
    // Counters and slices are on one time axis: step 4 is granted once step 1 is reported, and reported when its work is done.
    const [first, , , last] = (counters.get("loss") ?? []).map(({ ts = 0 }) => ts);
    const ofLastStep = slices.filter(
      ({ cat, args }) => (cat === "forward" || cat === "backward") && args?.step === 4,
    );
    const wholeMs = 1000;
    for (const { ts = 0, dur = 0 } of ofLastStep) {
      expect(ts + wholeMs).toBeGreaterThanOrEqual(first as number);
      expect(ts + dur - wholeMs).toBeLessThanOrEqual(last as number);
    }
    expect(ofLastStep).toHaveLength(2 * 2 * 3);
  });

  test("costs nothing but itself where the disk is full", async () => {
    const { losses, error } = await runTiny(workspace, {
      steps: 2,
      trace: true,
      sinks: [chromeTraceSink("/dev/full")],
    });
    expect(error).toBeUndefined();
    expect(losses).toHaveLength(2);
  });

  test("leaves a file that can be opened wherever it ends", async () => {
    const path = workspace.path("torn.json");
    const sink = chromeTraceSink(path);
    sink.write(stamped("run.started"));
    for (let step = 1; step <= 5; step++) {
      sink.write(stamped("step.finished", { step, lossNats: step === 2 ? Number.NaN : step }));
    }
    await sink.close();
    const text = readFileSync(path, "utf8");
    expect(JSON.parse(text)).toHaveLength(13);
    // Viewers take an array without its end; each entry is a line of its own.
    const lines = text.trimEnd().split("\n").slice(0, 7);
    expect(JSON.parse(`${lines.join("\n").replace(/,$/, "")}]`)).toHaveLength(6);
  });
});
