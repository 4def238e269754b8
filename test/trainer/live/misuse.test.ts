import { afterAll, describe, expect, it } from "vitest";
import { liveRefs, liveTensors } from "../../../src/compute/tensor/index.ts";
import { Runtime, type RuntimeOptions, tensor, zeros } from "../../../src/entries/index.ts";
import { lossesOf, Workspace } from "../../fixtures/run-tiny.ts";
import { called, lossesIn, rangeAt, SEED, withModel } from "./script.ts";

const workspace = new Workspace();
afterAll(() => workspace[Symbol.dispose]());

const layout: RuntimeOptions = { ranks: 2, zero: 1 };

describe("a call that cannot be made", () => {
  it("is refused before any work, in one sentence, and the model goes on", async () => {
    const tokens = (numSamples: number) => zeros([numSamples, 16], { dtype: "int64" });
    await withModel(workspace, layout, { accumulation: 2 }, async (model) => {
      await expect(model.step()).rejects.toThrow(
        "[step] expected something accumulated since the last step, got nothing (call accumulate before)",
      );
      // @ts-expect-error: no such program
      await expect(model.call("logProb", rangeAt(0))).rejects.toThrow(
        "[call] expected a program of the job, such as loss, logProbs, policy, broken, brokenRows, unevenRows, got logProb (did you mean logProbs?)",
      );
      // @ts-expect-error: it takes arguments
      const lacking = () => model.accumulate("policy", rangeAt(0));
      // @ts-expect-error: it gives a loss
      expect([lacking, () => model.call("policy", rangeAt(0), { factor: 1 })]).toHaveLength(2);
      const uneven = { inputIds: tokens(3), targets: tokens(2), advantages: tokens(3) };
      await expect(model.accumulate("policy", uneven, { factor: 1 })).rejects.toThrow(
        "[accumulate] expected a batch of tensors with its samples along dim 0, got 3 and 2 samples",
      );
      const six = { inputIds: tokens(6), targets: tokens(6) };
      const numTensors = liveTensors();
      await expect(model.accumulate("loss", six)).rejects.toThrow(
        "[accumulate] expected a multiple of 4 samples (2 replicas × 2 micro-batches), got 6",
      );
      expect(liveTensors()).toBeLessThanOrEqual(numTensors);
      await model.accumulate("loss", rangeAt(0));
      await expect(model.step({ lr: -1 })).rejects.toThrow("[step] expected a rate of at least 0, got -1");
      await expect(model.generate([[]], { maxNewTokens: 2 })).rejects.toThrow(
        "[generate] expected prompts of at least one token, got none in prompt 0",
      );
      await expect(model.parameters("h.[0")).rejects.toThrow(
        '[inspect] expected pattern to have the wildcards of a shell, got "h.[0" (close its brackets, with ranges in order)',
      );
      await expect(model.save()).rejects.toThrow("[save] expected a folder to save to, got none");
      await model.step();
      await model.close();
      await expect(model.step()).rejects.toThrow(
        "[model] expected a live model, got one that is closed (open it again)",
      );
    });
  });

  it("is refused on a second model of the runtime, and on one that was stopped", async () => {
    await using runtime = await Runtime.spawn({ ...layout, threadsPerRank: 1, warmStandby: false });
    const config = { data: workspace.text, cache: workspace.path("cache") };
    const model = await runtime.open(called, config);
    await expect(runtime.open(called, config)).rejects.toThrow(
      "[runtime] expected one run at a time, got a second",
    );
    await expect(runtime.run(called, config)).rejects.toThrow(
      "[runtime] expected one run at a time, got a second",
    );
    await runtime.stop();
    const late = model.accumulate("loss", { inputIds: tensor([1, 2, 3, 4]) });
    await expect(late).rejects.toMatchObject({ code: "RUN_STOPPED" });
    await expect(model.close()).rejects.toMatchObject({ code: "RUN_STOPPED" });
  });
});

describe("a live model", () => {
  it("is refused where its runtime goes back to leave batches out: its script would make the same calls again", async () => {
    await using runtime = await Runtime.spawn({
      ...layout,
      anomalies: { loss: "skip", spike: "rewind" },
      checkpoint: { inMemoryEverySteps: 4 },
    });
    const config = { data: workspace.text, cache: workspace.path("cache") };
    await expect(runtime.open(called, config)).rejects.toThrow(
      "[options] expected anomalies.spike to be stop or skip for a live model, got rewind (its script would make the same calls again; skip leaves the update out)",
    );
    const judge = await runtime.open(called, config, { name: "judge" });
    await expect(judge.close()).resolves.toBeUndefined();
  });
});

describe("a program of the wrong kind", () => {
  it.each([
    [
      "logProbs",
      "accumulate",
      "[logProbs] expected a scalar tensor, or an object of them by name, got a tensor of shape [2,16]",
    ],
    ["loss", "call", "[loss] expected rows by name, as in { logits }, got a Tensor"],
  ] as const)("is named: %s given to %s", async (program, kind, message) => {
    const wrong = withModel(workspace, layout, {}, async (model) => {
      await (model[kind] as (program: string, batch: unknown) => Promise<unknown>)(program, rangeAt(0));
    });
    await expect(wrong).rejects.toThrow(message);
  });
});

describe("rows that not all samples have", () => {
  it("are refused, and none of them is left with anyone", async () => {
    await withModel(workspace, { ranks: 1 }, {}, async (model) => {
      const numRefs: number[] = [];
      for (let call = 0; call < 3; call++) {
        await expect(model.call("unevenRows", rangeAt(0))).rejects.toThrow(
          '[unevenRows] expected "mean" to have a row for each of 4 samples',
        );
        numRefs.push(liveRefs());
      }
      expect(new Set(numRefs).size).toBe(1);
    });
  });
});

describe("an error in a program", () => {
  /** With the number of restarts: for the error of one rank alone, and for each error where stages wait for each other. */
  const layouts: readonly (readonly [string, RuntimeOptions, Readonly<Record<string, unknown>>, number])[] = [
    ["replicas", layout, {}, 1],
    ["ranks that split layers", { ranks: 2, tp: 2 }, {}, 1],
    ["stages", { ranks: 2, pp: 2 }, { accumulation: 2 }, 3],
    ["processes", { ranks: 2, zero: 3, placement: "process" }, {}, 1],
  ];

  it.each(layouts)(
    "fails its own call, and the model goes on to the bits of a run: %s",
    async (_, each, config, numRestarts) => {
      const ofRun = await lossesOf(workspace, { ...each, seed: SEED, steps: 3 }, config);
      const events = await withModel(workspace, each, config, async (model) => {
        void model.accumulate("loss", rangeAt(0));
        void model.step();
        const accumulated = model.accumulate("broken", rangeAt(0));
        const later = model.step();
        void model.accumulate("loss", rangeAt(1));
        const made = model.step();
        const error = await accumulated.catch((caught: Error) => caught);
        expect((error as Error).message).toContain("the program has a bug");
        expect((error as Error).stack).toMatch(/called\.ts:\d+/);
        // Nothing was accumulated for it.
        await expect(later).rejects.toThrow("the program has a bug");
        expect(await made).toMatchObject({ step: 2, lossNats: ofRun[1] });
        void model.accumulate("loss", rangeAt(2));
        // One replica alone fails.
        await expect(model.accumulate("broken", rangeAt(0), { on: 1 })).rejects.toThrow(
          "the program has a bug",
        );
        await expect(model.call("brokenRows", rangeAt(0))).rejects.toThrow("the program has a bug");
        expect(await model.step()).toMatchObject({ step: 3, lossNats: ofRun[2] });
      });
      expect(lossesIn(events)).toEqual(ofRun);
      expect(events.filter(({ kind }) => kind === "run.restored")).toHaveLength(numRestarts);
      expect(liveRefs()).toBe(0);
    },
  );

  it("is left out without a restart wherever it comes: within a step, ahead of others, before reads", async () => {
    const each: RuntimeOptions = { ranks: 2, zero: 3 };
    const config = { accumulation: 2 };
    const ofRun = await lossesOf(workspace, { ...each, seed: SEED, steps: 3 }, config);
    const events = await withModel(workspace, each, config, async (model) => {
      const failed: Promise<unknown>[] = [];
      const fail = (call: Promise<unknown>) =>
        failed.push(expect(call).rejects.toThrow("the program has a bug"));
      for (let step = 0; step < 3; step++) {
        fail(model.accumulate("broken", rangeAt(step)));
        fail(model.call("brokenRows", rangeAt(50)));
        const before = model.call("logProbs", rangeAt(step));
        void model.accumulate("loss", rangeAt(step));
        fail(model.accumulate("broken", rangeAt(step)));
        const after = model.call("logProbs", rangeAt(step));
        const made = model.step();
        fail(model.accumulate("broken", rangeAt(step)));
        fail(model.step());
        const texts = model.generate([[1, 2]], { maxNewTokens: 2 });
        expect((await before).rows.logProbs.equal((await after).rows.logProbs)).toBe(true);
        expect(await made).toMatchObject({ step: step + 1, lossNats: ofRun[step] });
        expect(await texts).toHaveLength(1);
      }
      await Promise.all(failed);
      expect(Object.keys(await model.parameters()).length).toBeGreaterThan(0);
    });
    expect(lossesIn(events)).toEqual(ofRun);
    expect(events.some(({ kind }) => kind === "run.restored")).toBe(false);
    expect(liveRefs()).toBe(0);
  });

  it("is thrown at the model's end if the script awaits no call", async () => {
    const failing = withModel(workspace, layout, {}, async (model) => {
      void model.accumulate("broken", rangeAt(0));
      void model.step();
    });
    await expect(failing).rejects.toThrow("the program has a bug");
  });
});

describe("an invariant model", () => {
  const url = new URL("../../fixtures/jobs/invariant.ts", import.meta.url);
  const open = async (options: RuntimeOptions, config: Readonly<Record<string, unknown>> = {}, job = url) => {
    await using runtime = await Runtime.spawn({
      invariant: true,
      threadsPerRank: 1,
      warmStandby: false,
      ...options,
    });
    await using _ = await runtime.open(job, config);
  };

  it("is refused where a part would compute a token by others", async () => {
    await expect(open({ graph: "exact" })).rejects.toThrow(
      "expected invariant to be used with graph off, got true",
    );
    await expect(open({}, { activation: "silu" })).rejects.toThrow(
      "[options] expected invariant to be used with relu, gelu after a bias, or a gate of silu or gelu, got silu in transformer.h.0.mlp.c_fc",
    );
    const family = new URL("../../fixtures/jobs/family.ts", import.meta.url);
    await expect(open({}, { family: "bert" }, family)).rejects.toThrow(
      "expected invariant to be used with a model that writes texts and can pack them into one row, got BertForMaskedLM",
    );
    const experts = { data: workspace.text, cache: workspace.path("cache"), experts: 2 };
    await expect(open({}, experts, called)).rejects.toThrow(
      "expected invariant to be used without experts, of which each computes its tokens together, got h.0.moe",
    );
  });
});
