import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { RuntimeOptions } from "../../../src/entries/index.ts";
import { expectNear } from "../../fixtures/expect-near.ts";
import { expertsJob, lossesOf, runTiny, Workspace } from "../../fixtures/run-tiny.ts";

const steps = 10;

describe("expert parallelism", () => {
  const workspace = new Workspace();
  let four: readonly number[] = [];

  const train = (options: RuntimeOptions, config: Readonly<Record<string, unknown>> = {}) =>
    lossesOf(workspace, { zero: 0, steps, ...options }, config, expertsJob);

  /** Matrix products of other numbers of rows may be blocked otherwise: float32 rounding, which training lets grow. */
  const numDigits = 4;

  beforeAll(async () => {
    four = await train({ ranks: 4 });
  });
  afterAll(() => workspace[Symbol.dispose]());

  it.each([2, 4])(
    "trains four replicas whose experts are dealt to %i ranks as with all experts on each",
    async (ep) => {
      expectNear(await train({ ranks: 4, ep }), four, numDigits);
    },
  );

  it.each([{ k: 2 }, { residual: true }, { dropTokens: false }])(
    "deals experts to ranks with %o",
    async (config) => {
      expectNear(await train({ ranks: 2, ep: 2 }, config), await train({ ranks: 2 }, config), numDigits);
    },
  );

  // Level 3 is in test/matrix.
  it("gives the same bits at ZeRO 0, 1 and 2", async () => {
    const losses = await train({ ranks: 4, ep: 2, zero: 0 });
    for (const zero of [1, 2]) expect(await train({ ranks: 4, ep: 2, zero })).toEqual(losses);
  });

  it("refuses LAMB, which stretches all of a layer's experts alike, before a rank is started", async () => {
    const { error, events } = await runTiny(
      workspace,
      { ranks: 2, ep: 2, steps },
      { lamb: true },
      expertsJob,
    );
    expect(error).toMatchObject({ code: "OPTIMIZER_OPTION" });
    expect(events.map(({ kind }) => kind)).not.toContain("run.started");
  });

  it("recomputes to the same bits", async () => {
    expect(await train({ ranks: 2, ep: 2, recompute: true })).toEqual(await train({ ranks: 2, ep: 2 }));
  });

  it.each([
    { ranks: 4, ep: 2, tp: 2, zero: 3 },
    { ranks: 4, ep: 2, tp: 2, sequenceParallel: true },
    { ranks: 4, ep: 2, pp: 2 },
  ])("goes with the other ways to split: %o", async (options) => {
    const config = { accumulation: 2 };
    expectNear(await train(options, config), await train({ ranks: 2 }, config), numDigits);
  });

  it("saves complete experts, which any other layout resumes from", async () => {
    const dir = workspace.path("dealt");
    const options = { ranks: 2, ep: 2, zero: 3, steps, checkpoint: { dir, everySteps: 5 } };
    const dealt = await runTiny(workspace, options, {}, expertsJob);
    expect(dealt.error).toBeUndefined();
    for (const layout of [{ ranks: 2 }, { ranks: 2, ep: 2 }, { ranks: 4, tp: 2, ep: 2 }]) {
      const from = { steps, resume: `${dir}/step-000005` };
      const resumed = await runTiny(workspace, { ...layout, ...from }, {}, expertsJob);
      expect(resumed.error).toBeUndefined();
      expectNear(resumed.losses.slice(5), dealt.losses.slice(5), numDigits);
    }
  });

  it("refuses ranks that do not divide the experts", async () => {
    const { error } = await runTiny(workspace, { ranks: 3, ep: 3 }, { batch: 9 }, expertsJob);
    expect(error?.message).toContain("expected ep to divide 4 experts, got 3");
  });
});
