import { describe, expect, it } from "vitest";
import { StepReport } from "../../src/actors/engine/conductor/index.ts";
import { Inspections } from "../../src/actors/inspect/index.ts";
import type { RankStepped } from "../../src/actors/protocols/index.ts";
import type { EventOf, TroupeEventBody } from "../../src/job/events/index.ts";

const stepped: RankStepped = {
  lossesNats: [1],
  namedLosses: [],
  learningRate: 0.1,
  numSamples: 3,
  numTokens: undefined,
  durationMs: 40,
  waits: { exposedMs: 0, gatherMs: 0, dataMs: 0 },
  recorded: [],
  metrics: [],
};

describe("StepReport", () => {
  it("times steps by their completion, however late and close together their reports arrive", () => {
    const reported: EventOf<"step.finished">[] = [];
    const emit = (event: TroupeEventBody): void => {
      if (event.kind === "step.finished") reported.push(event as EventOf<"step.finished">);
    };
    const listener = { stepMade: () => {} };
    const inspections = new Inspections();
    const report = new StepReport({
      inspections,
      memoryEverySteps: 100,
      emit,
      listener,
      residentBytes: () => 1,
    });
    const done = (atMs: number) => ({ ranks: [stepped], shards: [], requests: [], atMs });

    report.restartClock(1000);
    report.emit(1, done(1050), []);
    // An evaluation, done at 1200, whose scores took long to come: steps 2 and 3 waited for their turn.
    report.restartClock(1200);
    report.emit(2, done(1260), []);
    report.emit(3, done(1290), []);

    expect(reported.map(({ durationMs }) => durationMs)).toEqual([50, 60, 30]);
    expect(reported.map(({ samplesPerSecond }) => samplesPerSecond)).toEqual([60, 50, 100]);
  });
});
