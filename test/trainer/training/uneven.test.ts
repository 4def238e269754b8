import { afterAll, expect, it } from "vitest";
import { runTiny, Workspace } from "../../fixtures/run-tiny.ts";

const unevenJob = new URL("../../fixtures/jobs/uneven.ts", import.meta.url);
const workspace = new Workspace();
afterAll(() => workspace[Symbol.dispose]());

it.each([
  ["are ragged and nothing weighs them", "targets", unevenJob, 1],
  ["are ragged and weighed", "targets", undefined, 0],
  ["all count", "", unevenJob, 0],
] as const)(
  "a job whose labels %s gets one warning with the line to write, or none",
  async (_, weigh, job, times) => {
    const { events, error } = await runTiny(workspace, { ranks: 2, zero: 2, steps: 4 }, { weigh }, job);
    expect(error).toBeUndefined();
    const reported = events.filter((event) => event.kind === "losses.unweighed");
    expect(reported).toHaveLength(times);
    for (const { numCounted, advice } of reported) {
      expect(numCounted).toHaveLength(2);
      expect(numCounted[0]).not.toBe(numCounted[1]);
      expect(advice).toContain("weigh: ({ labels }) =>");
    }
  },
);
