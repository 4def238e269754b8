import { describe, expect, it } from "vitest";
import { DEFAULT_RULES, StragglerWatch } from "../../src/job/anomalies/index.ts";

const rules = { ...DEFAULT_RULES, stragglerSteps: 5 };

const replicas = [0, 1, 2].map(() => [0, 1, 2]);
const alone = [[0], [1]];

/** The ranks reported as stragglers in each step, given each rank's milliseconds of computing in each step. */
function stragglersIn(
  steps: readonly (readonly number[])[],
  alike: readonly (readonly number[])[] = replicas,
) {
  const watch = new StragglerWatch(rules, alike);
  return steps.flatMap((computedMs, step) => watch.look(computedMs).map(({ rank }) => ({ step, rank })));
}

const times = (count: number, computedMs: readonly number[]) =>
  Array.from({ length: count }, () => computedMs);

describe("a watch over stragglers", () => {
  it("reports a rank that takes twice as long as its replicas, in the fifth step in a row", () => {
    expect(stragglersIn(times(9, [100, 100, 210]))).toEqual([{ step: 4, rank: 2 }]);
  });

  it("reports either of two ranks as the straggler", () => {
    const pair = [
      [0, 1],
      [0, 1],
    ];
    expect(stragglersIn(times(5, [100, 210]), pair)).toEqual([{ step: 4, rank: 1 }]);
    expect(stragglersIn(times(5, [210, 100]), pair)).toEqual([{ step: 4, rank: 0 }]);
  });

  it.each([
    ["all take longer alike", times(9, [300, 300, 300])],
    ["one is a little slower", times(9, [100, 100, 190])],
    [
      "one is slow now and then",
      [...times(4, [100, 100, 900]), [100, 100, 100], ...times(4, [100, 100, 900])],
    ],
    ["steps are so short that the system's own unrest doubles them", times(9, [2, 2, 11])],
  ])("no straggler is reported if %s", (_, steps) => {
    expect(stragglersIn(steps)).toEqual([]);
  });

  it("tells again of a rank that had recovered", () => {
    const steps = [...times(6, [100, 100, 300]), [100, 100, 100], ...times(6, [100, 100, 300])];
    expect(stragglersIn(steps).map(({ step }) => step)).toEqual([4, 11]);
  });

  it("compares a rank without replicas with its own past", () => {
    const steps = [...times(32, [100, 400]), ...times(5, [100, 900])];
    expect(stragglersIn(steps, alone)).toEqual([{ step: 36, rank: 1 }]);
    expect(stragglersIn(times(40, [100, 400]), alone)).toEqual([]);
  });

  it("says nothing in a run of one rank, however slow it becomes", () => {
    expect(stragglersIn([...times(32, [100]), ...times(9, [900])], [[0]])).toEqual([]);
  });

  it("says how long the rank took and how long is usual", () => {
    const watch = new StragglerWatch({ ...DEFAULT_RULES, stragglerSteps: 1 }, replicas);
    expect(watch.look([100, 120, 300])).toEqual([
      { anomaly: "straggler", value: 300, limit: 200, rank: 2, policy: "tell" },
    ]);
  });
});
