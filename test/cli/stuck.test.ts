import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { afterAll, afterEach, describe, expect, it } from "vitest";
import type { Dataset, Job } from "../../src/entries/index.ts";
import { Workspace } from "../fixtures/run-tiny.ts";

const troupe = fileURLToPath(new URL("../../bin/troupe.mjs", import.meta.url));
const stuckJob = fileURLToPath(new URL("../fixtures/jobs/stuck.ts", import.meta.url));

/** The thread that waits and the function it waits for, by the name of the place in stuck.ts; a promise only where one is allowed. */
type Place = readonly [waits: string, ways: readonly ("loop" | "promise" | "loop 3" | "promise 3")[]];

/** A new function of a job without a line here does not compile. */
const ofJob: Readonly<Record<keyof Omit<Job, "config" | "programs">, Place>> = {
  training: ["job-loader#1 waits: training(…) of the job", ["loop"]],
  data: ["job-loader#1 waits: data(…) of the job", ["loop", "promise"]],
  model: ["job-loader#1 waits: model(…) of the job", ["loop"]],
  delta: ["job-loader#1 waits: delta(…) of the job", ["loop"]],
  optimizer: ["job-loader#1 waits: optimizer(…) of the job", ["loop"]],
  schedule: ["job-loader#1 waits: schedule(…) of the job", ["loop"]],
  tensorPlan: ["job-loader#1 waits: tensorPlan(…) of the job", ["loop"]],
  loss: ["rank-0#1 waits: loss(…) of the job", ["loop"]],
  weigh: ["feeder#1 waits: weigh(…) of the job", ["loop"]],
  predict: ["rank-0#1 waits: predict(…) of the job", ["loop"]],
  sample: ["rank-0#1 waits: sample(…) of the job", ["loop"]],
  loop: ["rank-0#1 waits: loop(…) of the job", ["loop"]],
};
const ofData: Readonly<Record<keyof Omit<Dataset, "facts" | "splits">, Place>> = {
  batch: ['feeder#1 waits: batch("train", 0, 2) of the job\'s data', ["loop", "promise"]],
  countTokens: ["feeder#1 waits: countTokens(…) of the job's data", ["loop"]],
  score: ['feeder#1 waits: score("validation", …) of the job\'s data', ["loop", "promise"]],
  fingerprint: ["job-loader#1 waits: fingerprint() of the job's data", ["loop"]],
};
const others: Readonly<Record<string, Place>> = {
  import: ["job-loader#1 waits: the import of stuck.ts", ["loop", "promise"]],
  lrAt: ["job-loader#1 waits: lrAt(…) of the job's schedule", ["loop"]],
  stateOf: ["rank-0#1 waits: stateOf(…) of optimizer stuck", ["loop"]],
  update: ["shard-0#1 waits: update(…) of optimizer stuck", ["loop"]],
};

const cases = Object.entries({ ...ofJob, ...ofData, ...others }).flatMap(([place, [waits, ways]]) =>
  ways.map((way) => [place, way, waits] as const),
);

describe("a function of a user's that never returns", () => {
  const workspace = new Workspace();
  afterAll(() => workspace[Symbol.dispose]());
  let kill = () => {};
  // A run that is not ended as it should be would go on for ever.
  afterEach(() => kill());

  /** Runs the job, sends a signal once something is said. @returns what was said, and how it ended */
  async function runUntil(stuck: string, said: string): Promise<{ code: number | null; err: string }> {
    const args = ["run", stuckJob, "--stall", "500", "--grace", "1"];
    const child = spawn(process.execPath, [troupe, ...args], {
      cwd: workspace.folder,
      env: { ...process.env, TROUPE_STUCK: stuck },
    });
    kill = () => void child.kill("SIGKILL");
    let err = "";
    child.stderr.on("data", (text) => {
      const before = err;
      err += String(text);
      if (!before.includes(said) && err.includes(said)) child.kill("SIGINT");
    });
    const [code] = (await once(child, "exit")) as [number | null];
    return { code, err };
  }

  it.each(cases)(
    "(%s, %s) is named within the stall time, and the first signal ends the run",
    async (place, way, waits) => {
      const { code, err } = await runUntil(`${place} ${way}`, waits);
      expect(err).toContain(waits);
      expect(err.split(waits)).toHaveLength(2);
      expect(err).toContain("expected the run to reach its last step, got");
      // 75 where a state could be saved.
      expect([1, 75]).toContain(code);
    },
  );

  it("is named by its line, with the batch's place, at a later batch as at the first", async () => {
    const { err } = await runUntil("batch loop 3", "feeder#1 waits: batch(");
    expect(err).toMatch(
      /waits: batch\("(train|validation)", \d+, 2\) of the job's data has not returned for 0:0\d/,
    );
  });
});
