// Runs that tune a delta of a base: what they compute, keep, save and go on from.
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { dematerialize, materialize } from "../../../src/compute/nn/index.ts";
import { Mesh, planBlocks } from "../../../src/compute/parallel/index.ts";
import { stepFolder } from "../../../src/entries/checkpoint.ts";
import { type HeldMemory, Runtime, type RuntimeOptions } from "../../../src/entries/index.ts";
import { saveHuggingFaceFolder } from "../../../src/library/checkpoint/index.ts";
import { applyDelta, lora } from "../../../src/library/deltas/index.ts";
import { GPT2LMHeadModel, weightBytes } from "../../../src/library/models/index.ts";
import { byteScheme, stateBytes } from "../../../src/tools/planner/index.ts";
import { readTensors } from "../../fixtures/read-tensors.ts";
import { lossesOf, runTiny, Workspace } from "../../fixtures/run-tiny.ts";

const job = new URL("../../fixtures/jobs/deltas.ts", import.meta.url);
const steps = 6;
const target = ["attn.c_attn", "c_proj"];
const fields = {
  vocab_size: 256,
  n_layer: 2,
  n_head: 2,
  n_embd: 32,
  n_positions: 16,
  embd_pdrop: 0,
  attn_pdrop: 0,
  resid_pdrop: 0,
};

describe("a run that tunes a delta", () => {
  const workspace = new Workspace();
  const base = workspace.path("base");
  const other = workspace.path("other");
  const plain = { ranks: 2, zero: 3, steps } as const;
  const settings = { pretrained: base, dropped: 0.25 };
  const run = (options: RuntimeOptions, more = {}) =>
    lossesOf(workspace, options, { ...settings, ...more }, job);
  let expected: readonly number[];

  beforeAll(async () => {
    for (const [seed, folder] of [base, other].entries()) {
      const model = new GPT2LMHeadModel(fields);
      materialize(model, { seed });
      await saveHuggingFaceFolder(folder, { config: model.configJson, weights: weightBytes(model) });
      dematerialize(model);
    }
    expected = await run(plain);
  });
  afterAll(() => workspace[Symbol.dispose]());

  it.each<[string, RuntimeOptions]>([
    ["at ZeRO 0", { zero: 0 }],
    ["at ZeRO 2, recomputed", { zero: 2, recompute: true }],
    ["with optimizer states beside it", { offload: { optimizer: "host" } }],
    ["in processes", { placement: "process" }],
    ["with blocks as programs", { graph: "exact" }],
  ])("has the same losses to the last digit %s", async (_, options) => {
    expect(await run({ ...plain, ...options })).toEqual(expected);
  });

  it.each<[string, RuntimeOptions]>([
    ["on two stages", { pp: 2 }],
    ["on ranks that split its layers", { tp: 2 }],
    [
      "on ranks that split its layers and share its positions",
      { tp: 2, sequenceParallel: true, recompute: true },
    ],
  ])("has the same losses up to the order of sums %s, its dropout included", async (_, options) => {
    const one = await run({ ...plain, ranks: 1 });
    const losses = await run({ ...plain, ...options });
    for (const [step, loss] of losses.entries()) expect(loss).toBeCloseTo(one[step] ?? Number.NaN, 5);
  });

  it("keeps no master and no optimizer state of its base in bfloat16, to the byte", async () => {
    await using runtime = await Runtime.spawn({
      ...plain,
      precision: "bf16",
      threadsPerRank: 1,
      warmStandby: false,
    });
    let held: Promise<readonly HeldMemory[]> | undefined;
    runtime.events$.subscribe((event) => {
      if (event.kind === "run.started") held = runtime.inspectMemory();
    });
    await runtime.run(job, { data: workspace.text, cache: workspace.path("cache"), ...settings });
    const model = applyDelta(new GPT2LMHeadModel(fields), lora({ rank: 4, target }));
    const mesh = new Mesh({ dp: 2 });
    for (const { rank, byKind } of (await held) ?? []) {
      const { layouts } = planBlocks(model, { zero: 3, mesh, rank });
      const planned = stateBytes(layouts, byteScheme("bf16"), "process", rank);
      expect(byKind.master?.liveBytes).toBe(planned.master);
      expect(byKind.optimizer?.liveBytes).toBe(planned.optimizer);
      expect(byKind.parameters?.liveBytes ?? 0).toBe(planned.parameters);
      const tuned = layouts
        .filter((layout) => !layout.base)
        .reduce((sum, { sliceNumel }) => sum + sliceNumel, 0);
      expect([planned.master, planned.optimizer]).toEqual([4 * tuned, 8 * tuned]);
    }
    expect(await held).toHaveLength(2);
  });

  it("tells, beside the number of its parameters, how many it trains", async () => {
    const { events } = await runTiny(workspace, plain, settings, job);
    const [started] = events.filter((event) => event.kind === "run.started");
    // Rank 4 beside 32 → 96, 32 → 32 and 128 → 32, in two layers.
    const numTrainable = 2 * 4 * (32 + 96 + 32 + 32 + 128 + 32);
    const base = new GPT2LMHeadModel(fields).numParameters;
    expect(started).toMatchObject({ numTrainable, numParameters: base + numTrainable });
  });

  describe("saves", () => {
    const dir = workspace.path("checkpoints");
    const at = (step: number) => join(dir, stepFolder(step));
    const saving = { ...plain, checkpoint: { dir, everySteps: 3 } };

    beforeAll(async () => {
      const { losses, error } = await runTiny(workspace, saving, settings, job);
      if (error !== undefined) throw error;
      expect(losses).toEqual(expected);
    });

    it("the delta alone, by peft's names", async () => {
      expect(readdirSync(at(3)).toSorted()).toEqual([
        "adapter_config.json",
        "adapter_model.safetensors",
        "config.json",
        "manifest.json",
        "optimizer.safetensors",
      ]);
      const model = applyDelta(new GPT2LMHeadModel(fields), lora({ rank: 4, target }));
      const tuned = [...model.namedParameters()].filter(([, { role }]) => role === "delta");
      const saved = await readTensors(join(at(3), "adapter_model.safetensors"));
      expect([...saved.keys()].toSorted()).toEqual(
        tuned.map(([name]) => `base_model.model.${name}`).toSorted(),
      );
      const moments = await readTensors(join(at(3), "optimizer.safetensors"));
      expect([...moments.keys()].toSorted()).toEqual(
        tuned.flatMap(([name]) => [`exp_avg.${name}`, `exp_avg_sq.${name}`]).toSorted(),
      );
    });

    it("what a run goes on from to the same last digit, on other ranks too", async () => {
      const on = await runTiny(workspace, { ...plain, resume: at(3) }, {}, job);
      expect(on.error).toBeUndefined();
      expect(on.losses.slice(3)).toEqual(expected.slice(3));
      const more = await runTiny(workspace, { ...plain, ranks: 4, tp: 2, resume: at(3) }, {}, job);
      expect(more.losses.slice(3)).toHaveLength(3);
      for (const [step, loss] of more.losses.slice(3).entries())
        expect(loss).toBeCloseTo(expected[step + 3] ?? Number.NaN, 5);
    });

    it("what a run on another base refuses", async () => {
      const { error } = await runTiny(workspace, { ...plain, resume: at(3) }, { pretrained: other }, job);
      expect(error).toMatchObject({ code: "RESUME_MISMATCH" });
      expect(error?.message).toContain("base");
    });

    it("what another run begins its delta with", async () => {
      const begun = await runTiny(
        workspace,
        { ...plain, steps: 1 },
        { ...settings, dropped: 0, adapter: at(6) },
        job,
      );
      expect(begun.error).toBeUndefined();
      const drawn = await run({ ...plain, steps: 1 }, { dropped: 0 });
      expect(begun.losses[0]).toBeLessThan(drawn[0] ?? 0);
    });
  });

  it("goes on from what is in memory when a rank dies", async () => {
    const faults = { fault: "exit", faultAt: 4, faultOnce: workspace.path("died") };
    const checkpoint = { inMemoryEverySteps: 2 };
    const { losses, events, error } = await runTiny(
      workspace,
      { ...plain, checkpoint },
      { ...settings, ...faults },
      job,
    );
    expect(error).toBeUndefined();
    expect(events.find(({ kind }) => kind === "run.restored")).toMatchObject({ from: "memory" });
    expect(losses).toEqual(expected);
  });

  it.each([
    ["adapters", { delta: "adapter" }],
    ["a soft prompt", { delta: "prompt" }],
    ["a prefix", { delta: "prefix" }],
    ["biases", { delta: "bitfit" }],
  ])(
    "tunes %s alike on ranks that split layers and share positions, and on two stages",
    async (_, chosen) => {
      const own = { pretrained: "", ...chosen };
      const one = await run({ ...plain, ranks: 1, zero: 0 }, own);
      const sharing = { tp: 2, sequenceParallel: true, recompute: true };
      for (const options of [{ tp: 2 }, sharing, { pp: 2 }, { zero: 3 }] as const) {
        const losses = await run({ ...plain, ...options }, own);
        expect(losses).toHaveLength(steps);
        for (const [step, loss] of losses.entries()) expect(loss).toBeCloseTo(one[step] ?? Number.NaN, 5);
      }
      expect(one.at(-1)).not.toBe(one[0]);
    },
  );

  it("trains biases alone, on a base that its seed draws", async () => {
    const dir = workspace.path("biases");
    const options = { ...plain, checkpoint: { dir, everySteps: 3 } };
    const { error, losses } = await runTiny(workspace, options, { delta: "bitfit" }, job);
    expect(error).toBeUndefined();
    const saved = await readTensors(join(dir, stepFolder(6), "adapter_model.safetensors"));
    expect([...saved.keys()].every((name) => name.endsWith(".bias"))).toBe(true);
    const on = await runTiny(workspace, { ...plain, resume: join(dir, stepFolder(3)) }, {}, job);
    expect(on.losses.slice(3)).toEqual(losses.slice(3));
  });
});
