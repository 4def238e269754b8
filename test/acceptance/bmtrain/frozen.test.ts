// BMTrain tests requires_grad and requires_grad_multi_gpu: parameters of one block are frozen and trained in turns.
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { formatSummary, Runtime, type RuntimeOptions } from "../../../src/entries/index.ts";
import { type ByName, gradientsOf, parametersOf, train } from "../../fixtures/acceptance/train.ts";
import { Workspace } from "../../fixtures/run-tiny.ts";

const job = new URL("../../fixtures/acceptance/gpt.ts", import.meta.url);
const bias = "transformer.h.0.mlp.c_fc.bias";
const weight = "transformer.h.0.mlp.c_fc.weight";
const lr = 1e-2;
/** The bias is frozen, then the weight in its place, then the bias again. */
const inTurns = "c_fc.bias;c_fc.weight;c_fc.bias";

describe("a parameter", () => {
  const workspace = new Workspace();
  const options = { ranks: 2, zero: 3 };
  const steps = 3;
  /** After each step. */
  let values: readonly ByName[];
  /** The first moment, which is the last gradient that a parameter had. */
  let gradients: readonly ByName[];
  let initial: ByName;
  /** After the first step, as BMTrain prints it. */
  let summary: string;

  beforeAll(async () => {
    const dir = workspace.path("turns");
    await using runtime = await Runtime.spawn({
      threadsPerRank: 1,
      warmStandby: false,
      ...options,
      steps,
      checkpoint: { dir, everySteps: 1 },
    });
    let summaries: ReturnType<Runtime["inspectModel"]> | undefined;
    runtime.events$.subscribe((event) => {
      if (event.kind === "run.started") summaries = runtime.inspectModel("*c_fc*");
    });
    await runtime.run(job, { lr, weightDecay: 0.1, frozen: inTurns });
    summary = formatSummary((await summaries) ?? []);
    const ofSteps = Array.from({ length: steps }, (_, index) => index + 1);
    values = await Promise.all(ofSteps.map((step) => parametersOf({ dir }, step)));
    gradients = await Promise.all(ofSteps.map((step) => gradientsOf({ dir }, step)));
    const still = workspace.path("still");
    await train(job, still, { ...options, steps: 1 }, { lr: 0 });
    initial = await parametersOf({ dir: still }, 1);
  });
  afterAll(() => workspace[Symbol.dispose]());

  it("is frozen and trained in turns while a run goes on: what is frozen stays to the bit, the rest changes", () => {
    const states = [initial, ...values];
    const changed = (name: string) =>
      values.map((after, step) => `${after.get(name)}` !== `${states[step]?.get(name)}`);
    expect(changed(weight)).toEqual([true, false, true]);
    expect(changed(bias)).toEqual([false, true, false]);
    for (const name of initial.keys())
      if (!name.includes("c_fc")) expect(changed(name), name).toEqual([true, true, true]);
  });

  it("has a gradient in the steps that train it alone, and keeps the last one's traces while it is frozen", () => {
    const [first, second, third] = gradients as [ByName, ByName, ByName];
    expect(first.get(weight)?.every((value) => value === 0)).toBe(false);
    // Nothing is kept of what no step has trained.
    expect(first.has(bias)).toBe(false);
    expect(second.get(weight)).toEqual(first.get(weight));
    expect(second.get(bias)?.every((value) => value === 0)).toBe(false);
    expect(third.get(weight)).not.toEqual(second.get(weight));
    expect(third.get(bias)).toEqual(second.get(bias));
    const lineOf = (name: string) => summary.split("\n").find((line) => line.includes(name)) ?? "";
    expect(lineOf(bias).trim().split(/ +/).slice(-2)).toEqual(["0.0000", "0.0000"]);
    expect(lineOf(weight).trim().split(/ +/).at(-2)).not.toBe("0.0000");
  });

  it("is frozen where a resumed run says so, keeping its state, and trained again by the next", async () => {
    const [turns, held, back] = ["turns", "held", "back"].map((name) => workspace.path(name)) as [
      string,
      string,
      string,
    ];
    await train(
      job,
      held,
      { ...options, resume: join(turns, "step-000002"), steps: 3 },
      { lr, frozen: "c_fc" },
    );
    await train(job, back, { ...options, zero: 1, resume: held, steps: 4 }, { lr, frozen: "" });
    const [before, after] = [await parametersOf({ dir: held }, 3), await parametersOf({ dir: back }, 4)];
    const moments = await gradientsOf({ dir: held }, 3);
    for (const name of [weight, bias]) {
      expect(before.get(name)).toEqual(values[1]?.get(name));
      expect(moments.get(name)).toEqual(gradients[1]?.get(name));
      expect(after.get(name)).not.toEqual(before.get(name));
    }
  });

  it("may be frozen with all others of its stage, also where the loss is scaled", async () => {
    const config = { lr, frozen: "wte|wpe|h[.]0", steps: 3 };
    const losses = async (folder: string, layout: RuntimeOptions) =>
      (await train(job, workspace.path(folder), { lossScale: 8, accumulation: 2, ...layout }, config)).losses;
    const oneRank = await losses("alone", { ranks: 1 });
    expect(oneRank).toHaveLength(3);
    expect(oneRank[2]).not.toBe(oneRank[0]);
    expect(await losses("staged", { ranks: 2, pp: 2 })).toEqual(oneRank);
  });
});
