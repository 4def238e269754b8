import { afterAll, describe, expect, it } from "vitest";
import { listCheckpoints } from "../../../src/entries/checkpoint.ts";
import type { TroupeEvent } from "../../../src/entries/index.ts";
import { lossesOf, runTiny, Workspace } from "../../fixtures/run-tiny.ts";

const workspace = new Workspace();
afterAll(() => workspace[Symbol.dispose]());

const of = <K extends TroupeEvent["kind"]>(events: readonly TroupeEvent[], kind: K) =>
  events.filter((event): event is Extract<TroupeEvent, { kind: K }> => event.kind === kind);

/** The loss falls, so that none but the first evaluation is the best of those for which higher is better. */
const worseAndWorse = { mode: "max" } as const;

describe("the best state of a run", () => {
  it("is kept, and the run ends at the evaluation that exhausts the patience, also where a rank dies before", async () => {
    const options = { ranks: 2, zero: 3, steps: 20 } as const;
    const undisturbed = await lossesOf(workspace, options);
    const dir = workspace.path("patience");
    const config = {
      ...{ evaluateEvery: 2, best: JSON.stringify({ ...worseAndWorse, patience: 2 }) },
      ...{ fault: "exit", faultAt: 5, faultOnce: workspace.path("patience-died") },
    };
    const checkpoint = { dir, everySteps: 3, keepLast: 1 };
    const { events, losses, error } = await runTiny(workspace, { ...options, checkpoint }, config);
    expect(error).toBeUndefined();
    expect(of(events, "actor.restarted")).not.toEqual([]);
    expect(of(events, "run.finished")).toMatchObject([{ steps: 6, endedBy: "no-improvement" }]);
    expect(losses).toEqual(undisturbed.slice(0, 6));
    const evaluated = new Map(of(events, "evaluation.finished").map(({ step, isBest }) => [step, isBest]));
    expect([...evaluated]).toEqual([
      [2, true],
      [4, false],
      [6, false],
    ]);
    const listed = (await listCheckpoints(dir)).map(({ step, named }) => [step, named]);
    expect(listed).toEqual([
      [6, []],
      [2, ["best"]],
    ]);
  });

  it("decides when learning rates are reduced, on all ranks at one step, and the same after a resume", async () => {
    const dir = workspace.path("reduced");
    const reduceRate = { factor: 0.5, patience: 1 };
    const config = { evaluateEvery: 2, best: JSON.stringify({ ...worseAndWorse, keep: false, reduceRate }) };
    const options = { ranks: 2, tp: 2, steps: 8 };
    const run = await runTiny(workspace, { ...options, checkpoint: { dir, everySteps: 4 } }, config);
    expect(run.error).toBeUndefined();
    const plain = of((await runTiny(workspace, options)).events, "step.finished");
    const factors = of(run.events, "step.finished").map(
      ({ learningRate }, index) => learningRate / (plain[index]?.learningRate ?? 0),
    );
    for (const [index, factor] of [1, 1, 1, 1, 0.5, 0.5, 0.25, 0.25].entries())
      expect(factors[index]).toBeCloseTo(factor);
    const resumed = await runTiny(workspace, { ...options, resume: `${dir}/step-000004` }, config);
    expect(resumed.losses.slice(4)).toEqual(run.losses.slice(4));
  });

  it("keeping the best is refused if no evaluation measures the compared figure", async () => {
    const config = { evaluateEvery: 1, best: JSON.stringify({ metric: "accuracy" }) };
    const { error } = await runTiny(workspace, { ranks: 1, steps: 2 }, config);
    expect(error).toMatchObject({ code: "JOB_INVALID" });
    expect(error?.message).toContain("got accuracy (there are loss)");
  });
});
