import { writeFileSync } from "node:fs";
import { afterAll, describe, expect, it } from "vitest";
import { liveRefs } from "../../../src/compute/tensor/index.ts";
import { Runtime, type RuntimeOptions, type TroupeEvent } from "../../../src/entries/index.ts";
import type calledJob from "../../fixtures/jobs/called.ts";
import { Workspace } from "../../fixtures/run-tiny.ts";
import { called, lossesIn, rangeAt, SEED, withModel } from "./script.ts";

const workspace = new Workspace();
afterAll(() => workspace[Symbol.dispose]());

const config = { data: workspace.text, cache: workspace.path("cache") };
const isOf = (name: string | undefined) => (event: TroupeEvent) => event.model === name;

/** Two models of one runtime, called by turns. @returns the losses of each, and the rows of the second */
async function byTurns(layout: RuntimeOptions, own: Readonly<Record<string, unknown>>, fault = {}) {
  const events: TroupeEvent[] = [];
  await using runtime = await Runtime.spawn({ threadsPerRank: 1, warmStandby: false, seed: SEED, ...layout });
  runtime.events$.subscribe((event) => events.push(event));
  await using first = await runtime.open<typeof calledJob>(called, { ...config, ...fault });
  await using second = await runtime.open<typeof calledJob>(
    called,
    { ...config, layers: 3 },
    {
      name: "second",
      ...own,
    },
  );
  for (let step = 0; step < 4; step++) {
    void first.accumulate("loss", rangeAt(step));
    void second.accumulate("loss", rangeAt(step + 10));
    void second.step();
    void first.step();
  }
  const { rows } = await second.call("logProbs", rangeAt(0));
  const names = new Set(runtime.inspect().map(({ actor }) => actor));
  await first.close();
  // The second lives on.
  expect((await second.call("logProbs", rangeAt(0))).rows.logProbs.equal(rows.logProbs)).toBe(true);
  await second.close();
  return { events, names };
}

describe("several live models on one runtime", () => {
  const layouts: readonly (readonly [string, RuntimeOptions, Readonly<Record<string, unknown>>])[] = [
    ["on as many ranks", { ranks: 2, zero: 3 }, {}],
    ["on a mesh of its own", { ranks: 2, zero: 1 }, { ranks: 2, tp: 2 }],
    ["in processes", { ranks: 2, zero: 2, placement: "process" }, { ranks: 1 }],
  ];

  it.each(layouts)("train each to the bits of a model alone: %s", async (_, layout, own) => {
    const alone = async (each: RuntimeOptions, more: object, at: number) =>
      lossesIn(
        await withModel(workspace, each, more as Record<string, unknown>, async (model) => {
          for (let step = 0; step < 4; step++) {
            void model.accumulate("loss", rangeAt(step + at));
            void model.step();
          }
        }),
      );
    const { events, names } = await byTurns(layout, own);
    expect(lossesIn(events.filter(isOf(undefined)))).toEqual(await alone(layout, {}, 0));
    expect(lossesIn(events.filter(isOf("second")))).toEqual(
      await alone({ ...layout, ...own }, { layers: 3 }, 10),
    );
    expect(names).toContain("rank-0");
    expect(names).toContain("second-rank-0");
    expect(liveRefs()).toBe(0);
  });

  it("restarts the one whose rank dies, and leaves the other alone", async () => {
    const calm = await byTurns({ ranks: 2, zero: 3 }, {});
    const fault = { fault: "exit", faultAt: 2, faultOnce: workspace.path("died") };
    const struck = await byTurns({ ranks: 2, zero: 3 }, {}, fault);
    const restarted = struck.events.filter(({ kind }) => kind === "actor.restarted");
    expect(restarted.length).toBeGreaterThan(0);
    expect(restarted.every(isOf(undefined))).toBe(true);
    for (const name of [undefined, "second"])
      expect(lossesIn(struck.events.filter(isOf(name)))).toEqual(lossesIn(calm.events.filter(isOf(name))));
    expect(liveRefs()).toBe(0);
  });

  it("may be a judge, and a reference which stays as the policy was", async () => {
    const settings = config;
    await using runtime = await Runtime.spawn({ ranks: 2, threadsPerRank: 1, warmStandby: false });
    await using policy = await runtime.open<typeof calledJob>(called, settings);
    void policy.accumulate("loss", rangeAt(0));
    void policy.step();
    // #region reference
    const reference = await policy.frozenCopy();
    // #endregion
    // #region judge
    const judge = await runtime.open<typeof calledJob>(called, settings, { name: "judge", ranks: 1 });
    // #endregion
    void judge.accumulate("loss", rangeAt(2));
    await judge.step();
    const stepOf = async (model: Pick<typeof judge, "events">) => {
      for await (const event of model.events({ kinds: ["step.finished"] })) return [event.model, event.step];
    };
    expect(await stepOf(judge)).toEqual(["judge", 1]);
    expect(await stepOf(policy)).toEqual([undefined, 1]);
    const before = (await policy.call("logProbs", rangeAt(3))).rows.logProbs;
    expect((await judge.call("logProbs", rangeAt(3))).rows.logProbs.equal(before)).toBe(false);
    void policy.accumulate("loss", rangeAt(1));
    await policy.step();
    expect((await policy.call("logProbs", rangeAt(3))).rows.logProbs.equal(before)).toBe(false);
    expect((await reference.call("logProbs", rangeAt(3))).rows.logProbs.equal(before)).toBe(true);
    await judge.close();
  });

  it("are refused in one sentence where they cannot be", async () => {
    await using runtime = await Runtime.spawn({ ranks: 1, threadsPerRank: 1, warmStandby: false });
    await using _ = await runtime.open(called, config, { name: "judge" });
    await expect(runtime.open(called, config, { name: "judge" })).rejects.toThrow(
      "[runtime] expected one model judge, got a second (close the first, or give another name)",
    );
    await expect(runtime.open(called, config, { name: "The judge" })).rejects.toThrow(
      "[options] expected name to be lower-case letters, digits and -, beginning with a letter, got The judge",
    );
    await expect(runtime.open(called, config, { ranks: 2 })).rejects.toThrow(
      "[options] expected name to be given with ranks of a live model, got none (without a name, Runtime.spawn decides)",
    );
    await using policy = await runtime.open<typeof calledJob>(called, config);
    await expect(policy.frozenCopy({ ranks: 0 })).rejects.toThrow("[options] expected ranks to be");
    await expect(policy.frozenCopy({ hosts: [1] })).rejects.toThrow(
      "[options] expected hosts to be left out",
    );
    await expect(runtime.open(called, config, { name: "other", hosts: [1] })).rejects.toThrow(
      "[options] expected hosts to be left out without a launch on several hosts, got [1]",
    );
    writeFileSync(workspace.path("kept"), "");
    const inFile = { name: "other", checkpoint: { dir: workspace.path("kept") } };
    await expect(runtime.open(called, config, inFile)).rejects.toMatchObject({
      code: "CHECKPOINT_DIRECTORY",
    });
  });
});
